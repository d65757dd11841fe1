#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/irange.h>
#include <torch/library.h>

#include <algorithm>
#include <tuple>

static std::tuple<at::Tensor, at::Tensor> weighted_bins(const at::Tensor& places_, const at::Tensor& weights_,
                                                        int64_t bins) {
    TORCH_CHECK(places_.dim() == 1 && places_.sizes() == weights_.sizes(), "two vectors of one length are expected");
    TORCH_CHECK(places_.scalar_type() == at::kLong && weights_.scalar_type() == at::kFloat, "unexpected types");
    const auto places = places_.contiguous(), weights = weights_.contiguous();
    const int64_t n = places.numel();
    const int64_t parts = std::min<int64_t>(4, n / 4096 + 1);
    const auto each_sums = at::zeros({parts, bins}, weights.options().dtype(at::kDouble));
    const auto each_counts = at::zeros({parts, bins}, places.options());

    const int64_t* place = places.data_ptr<int64_t>();
    const float* weight = weights.data_ptr<float>();
    at::parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
        for (const auto part : c10::irange(first, last)) {
            double* sums = each_sums.mutable_data_ptr<double>() + part * bins;
            int64_t* counts = each_counts.mutable_data_ptr<int64_t>() + part * bins;
            for (const auto i : c10::irange(n * part / parts, n * (part + 1) / parts)) {
                TORCH_CHECK_INDEX(place[i] >= 0 && place[i] < bins, "bin ", place[i], " of ", bins);
                sums[place[i]] += weight[i];
                ++counts[place[i]];
            }
        }
    });

    auto sums = at::empty({bins}, weights.options());
    auto counts = at::empty({bins}, places.options());
    const auto partial_sums = each_sums.accessor<double, 2>();
    const auto partial_counts = each_counts.accessor<int64_t, 2>();
    float* sum = sums.mutable_data_ptr<float>();
    int64_t* count = counts.mutable_data_ptr<int64_t>();
    for (const auto b : c10::irange(bins)) {
        double total = 0.0;
        count[b] = 0;
        for (const auto part : c10::irange(parts)) {
            total += partial_sums[part][b];
            count[b] += partial_counts[part][b];
        }
        sum[b] = static_cast<float>(total);
    }
    return {sums, counts};
}

TORCH_LIBRARY(bins, m) { m.def("weighted_bins(Tensor places, Tensor weights, int bins) -> (Tensor, Tensor)"); }

TORCH_LIBRARY_IMPL(bins, CPU, m) { m.impl("weighted_bins", weighted_bins); }
