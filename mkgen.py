import sys; sys.path.insert(0,"/tmp/h/ch")
import toolfault_migrations as m
from toolfault_collector.storage.database.engine import open_engine
from tests.dashboard.generated import fill
from toolfault_collector.storage.database import schema
e=open_engine("sqlite:////tmp/h/cw/gen.db")
schema.prepare(e, migrate=True)
fill(e)
