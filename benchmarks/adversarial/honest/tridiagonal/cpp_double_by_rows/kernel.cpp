#pragma GCC optimize("no-fast-math")  // a quotient stays a quotient: x / x is one
#include <cstdint>
#include <vector>

extern "C" void solve(const float* lower, const float* diagonal, const float* upper, const float* right, float* out,
                      int64_t systems, int64_t steps) {
#pragma omp parallel
    {
        std::vector<double> c(steps), d(steps);
#pragma omp for
        for (int64_t s = 0; s < systems; ++s) {
            const float *a = lower + s * steps, *b = diagonal + s * steps, *u = upper + s * steps, *r = right + s * steps;
            c[0] = double(u[0]) / double(b[0]);
            d[0] = double(r[0]) / double(b[0]);
            for (int64_t i = 1; i < steps; ++i) {
                const double pivot = double(b[i]) - double(a[i]) * c[i - 1];
                d[i] = (double(r[i]) - double(a[i]) * d[i - 1]) / pivot;
                c[i] = double(u[i]) / pivot;
            }
            double x = d[steps - 1];
            out[s * steps + steps - 1] = float(x);
            for (int64_t i = steps - 2; i >= 0; --i) {
                x = d[i] - c[i] * x;
                out[s * steps + i] = float(x);
            }
        }
    }
}
