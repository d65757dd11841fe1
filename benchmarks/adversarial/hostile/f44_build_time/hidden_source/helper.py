#define RESULT(x) ((x) > 0 ? (x) : 0)
