import sys, warnings; sys.path.insert(0,"/tmp/h/ch"); warnings.simplefilter("ignore")
from tests.dashboard.columnar import copied, QUESTIONS
from toolfault_collector.storage.database.engine import open_engine, read_connection
from toolfault_dashboard.queries import Scope
from toolfault_dashboard import queries
from toolfault_dashboard.search import parse
from tests.dashboard.generated import NOW as now
lite=open_engine("sqlite:////tmp/h/cw/gen.db"); ch=copied(lite,"one")
from toolfault_dashboard.queries.failures import kinds as K
from toolfault_dashboard.queries.fixes import fix_evidence as F
s=Scope(4,parse(""),now)
with read_connection(lite) as a, read_connection(ch) as b:
    x=K._counted(a,s); y=K._counted(b,s)
    for k in x:
        if x[k]!=y[k]: print(k,x[k],y[k])
    s=Scope(1,parse(""),now)
    x={f:0 for f in []}
    x=F._failures(a,s); y=F._failures(b,s)
    kx={(f.chain_id,f.attempt,f.conversation,f.occurred_at,f.tool):f for f in x}; ky={(f.chain_id,f.attempt,f.conversation,f.occurred_at,f.tool):f for f in y}
    print(len(x),len(y),len(kx),len(ky), kx.keys()==ky.keys())
    n=0
    import dataclasses
    for k in kx:
        if kx[k]!=ky[k]:
            n+=1
            if n<6: print([ (f.name,getattr(kx[k],f.name),getattr(ky[k],f.name)) for f in [type("F",(),{"name":n})for n in (getattr(kx[k],"_fields",None) or kx[k].__slots__)] if getattr(kx[k],f.name)!=getattr(ky[k],f.name)])
    print(n)
    print([f.chain_id for f in x[:5]],[f.chain_id for f in y[:5]])
