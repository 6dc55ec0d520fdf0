import sys,warnings; sys.path.insert(0,"/tmp/h/ch"); warnings.simplefilter("ignore")
from sqlalchemy import *
e=create_engine("clickhousedb://localhost/default?interface=chdb")
from toolfault_dashboard.queries.counting.weighing import weight
from toolfault_collector.storage.tables import tool_call
print(select(weight(), tool_call.c.occurred_at//literal(7)).compile(dialect=e.dialect))
def q(c,s): 
    try: print(s, '->', c.execute(text(s)).all())
    except Exception as x: print(s,'ERR',str(x)[:200])
with e.connect() as c:
    q(c,"select 'a%b' LIKE 'a!%b' ESCAPE '!', 'axb' LIKE 'a!%b' ESCAPE '!'")
    q(c,"select intDiv(-3,7), -3/7, floor(-3/7), toTypeName(1792603734589258/86400000000)")
    q(c,"select min(x), max(x), count(x), sum(x) from (select toInt64(1) as x where 0)")
    q(c,"SET join_use_nulls=1")
    q(c,"select name,value from system.settings where name in ('join_use_nulls','aggregate_functions_null_for_empty','allow_experimental_correlated_subqueries','transform_null_in','union_default_mode','cast_keep_nullable','short_circuit_function_evaluation','group_by_use_nulls','prefer_column_name_to_alias','enable_positional_arguments')")
    q(c,"select JSONExtract('{\"a.b\":1,\"c\":\"x\"}','a.b','Nullable(String)'), JSONExtract('{\"c\":\"x\"}','a','Nullable(String)'), JSONExtract(CAST(NULL AS Nullable(String)),'a','Nullable(String)')")
    q(c,"select NULL IN (select 1), (1,NULL) in (select 1,2), not(coalesce(NULL in (select 1),false)), CAST(NULL AS Nullable(Int64)) NOT IN (1,2)")
    q(c,"select bitAnd(5,4), 5 & 4")
    q(c,"select (1,2) < (1,3), arrayStringConcat(groupArray(toString(number)),',') from numbers(3)")
