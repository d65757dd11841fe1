"""The optimization loop: select, plan, code, evaluate, judge, record."""
