import sys, warnings, time
sys.path.insert(0,"/tmp/h/ch")
warnings.simplefilter("ignore")
from tests.dashboard.columnar import copied
from toolfault_collector.storage.database.engine import open_engine
from sqlalchemy import text
t=time.time()
e=copied(open_engine("sqlite:////tmp/h/s/d.db"),"one"); print(time.time()-t)
with e.connect() as c:
    print(c.execute(text("select count(*), count(distinct args_fingerprint), any(args_fingerprint) from tool_call")).all())
    print(c.execute(text("select version()")).all())
    print(c.execute(text("select toTypeName(x), x from (select ? as x union all select 1)".replace("?","1.5"))).all())
