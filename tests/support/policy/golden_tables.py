"""The two rule tables that we come from.

The first is the sample of the original's description, the second what its database shipped with.
There a number means `>`, and `default` is the class of a pod that names none (`test`). By the words
of the description, the occupied column of a row for `oppo` counts that class alone; the program
that used the database counted all classes.
"""

from tests.support.policy.documents import rules_of

SAMPLE = rules_of(
    """
- {user: ^fa_test$, then: retain}
- {user: ^fa_test2$, priority: prod|test, occupiedHigh: 4, then: oppo}
- {user: ^fa_test2$, priority: prod|test, occupiedHigh: 0, then: retain}
- {user: ^fa_test2$, priority: oppo, occupiedLow: 30, then: fail}
- {user: ^fa_test2$, priority: oppo, occupiedLow: 0, then: retain}
- {user: ^user_proh$, then: fail}
- {user: ^fa.*, priority: prod|test, occupiedHigh: 2, then: oppo}
- {user: ^fa.*, priority: prod|test, occupiedHigh: 0, then: retain}
- {user: .*, priority: prod|test, then: oppo, note: 普通用户只能提交oppo任务}
- {user: .*, priority: oppo, occupiedLow: 20, then: fail, note: 超过20将失败}
- {user: .*, priority: oppo, occupiedLow: 0, then: retain}
- {user: .*, then: retain}
"""
)

SHIPPED = rules_of(
    """
- {user: ^first$, then: retain}
- {user: ^second$, then: retain}
- {user: ^third$, then: retain}
- {user: ^fourth$, then: retain}
- {user: ^admin$, then: retain}
- {user: ^user_proh$, then: fail, note: not allowed}
- {user: .*, priority: prod, then: test, note: prod is for admins}
- {user: .*, priority: test, occupied: 2, then: oppo, note: over 2 are opportunistic}
- {user: .*, priority: test, occupied: 0, then: retain}
- {user: .*, priority: oppo, occupied: 10, then: fail, note: over 10 are refused}
- {user: .*, priority: oppo, occupied: 0, then: retain}
- {user: .*, then: retain}
"""
)
