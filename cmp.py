import sys, warnings, time, traceback, collections, shutil, pathlib, os
sys.path.insert(0,"/tmp/h/ch")
warnings.simplefilter("ignore")
from tests.dashboard.columnar import copied, QUESTIONS, answer
from toolfault_collector.storage.database.engine import open_engine, read_connection
from toolfault_collector.admin.projects import find_project
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse
which=sys.argv[1]; texts=sys.argv[2].split("|") if len(sys.argv)>2 else [""]; only=sys.argv[3].split("|") if len(sys.argv)>3 else None
if which=="real": f="/tmp/h/s/d.db"; now=1795784451*10**6; ps=[1,2]
else:
    f="/tmp/h/cw/gen.db"; from tests.dashboard.generated import NOW as now, fill
    ps=[1,3,4]
lite=open_engine(f"sqlite:///{f}"); ch=copied(lite,"one")
count=collections.Counter(); spent=collections.Counter()
for p in ps:
  for t in texts:
    for n in QUESTIONS:
        if only and n not in only: continue
        s=Scope(p,parse(t),now)
        try:
            with read_connection(lite) as c: want=answer(c,s,n)
        except Exception as e:
            traceback.print_exc(); print("SQLITE",n,t); continue
        t0=time.time()
        try:
            with read_connection(ch) as c: got=answer(c,s,n)
        except Exception as e:
            tb=traceback.extract_tb(e.__traceback__)
            where=[f"{f.filename.split('toolfault_')[-1]}:{f.lineno}" for f in tb if "toolfault_" in f.filename][-1:]
            count["ERR"]+=1
            print("ERR",p,repr(t),n,where,type(e).__name__,str(e)[:int(os.environ.get("W",260))]); continue
        spent[n]+=time.time()-t0
        if got==want: count["equal"]+=1
        else:
            count["DIFF"]+=1
            a,b=repr(got),repr(want); i=next((i for i,(x,y) in enumerate(zip(a,b)) if x!=y),0)
            print("DIFF",p,repr(t),n,"CH",a[max(0,i-60):i+80],"LITE",b[max(0,i-60):i+80])
print(count, "seconds", sum(spent.values()), spent.most_common(6))
