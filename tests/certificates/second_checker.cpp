// A second checker of certificates of univariate trees (docs/certificates.md), independent of the first one: it reads
// the unpacked file, keeps samples that are equal as they are, and walks them one by one.
//
//     g++ -std=c++17 -O2 -ffp-contract=off -o second_checker second_checker.cpp
//     gzip -dc proof.gz | ./second_checker
//
// It prints what is certified and ends with 0, or prints what is wrong and ends with 3. The names and the digest of the
// first line are not read: what is certified is said of the samples and numbers in the file.
//
// Arithmetic: losses are whole numbers of 64 bits, products have 128. Doubles occur where the format demands IEEE
// arithmetic (targets of losses by sums, which is why contraction is off), and in quotients and logarithms, which are
// raised by far more than their roundings.

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

using Int = std::int64_t;
using Wide = __int128;

namespace {

constexpr Int MOST = Int(1) << 52;         // what all rows may lose, in units of the grid
constexpr Int NEVER = Int(1) << 60;        // loss of a tree that does not exist
constexpr Int MAX_CELLS = Int(1) << 27;    // numbers of a table
constexpr std::size_t MAX_LINE = 1u << 26; // bytes
constexpr int MAX_LEVELS = 10, MAX_EXPONENT = 1000, MAX_OF_RATES = 200;
constexpr long double RAISED = 0x1p-48L;          // a share for each target: more than two quotients and their sum round
constexpr long double LOGARITHM = 0x1p-45L;       // more than a share by which an excess is missed, even in doubles
constexpr long double NEARLY = 1e-9L;             // share by which a stated objective may miss the tree's value

long line_number = 0;

struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void require(bool holds, const std::string& message) {
    if (!holds) throw Refused(message);
}

// ---------------------------------------------------------------------- the file

class Line {
public:
    // Reads the next line; false at the end of the file.
    bool read() {
        text.clear();
        at = 0;
        int c = std::getchar();
        if (c == EOF) return false;
        ++line_number;
        for (; c != EOF && c != '\n'; c = std::getchar()) {
            require(text.size() < MAX_LINE, "a line is too long");
            require(c >= ' ' && c < 127, "a character is none of text");
            text.push_back(char(c));
        }
        return true;
    }

    void next(const char* key) {
        require(read(), "the file ends before the proof does");
        if (*key != 0) require(word() == key, std::string("no line '") + key + "' in its place");
    }

    bool more() const { return at <= text.size() && !text.empty() && at != text.size() + 1; }

    std::string word() {
        require(more(), "a line has too few entries");
        const std::size_t end = std::min(text.find(' ', at), text.size());
        std::string found = text.substr(at, end - at);
        at = end + 1;
        return found;
    }

    Int integer(Int least, Int most) {
        const std::string text_of = word();
        const std::size_t sign = !text_of.empty() && text_of[0] == '-';
        bool digits = text_of.size() > sign && text_of.size() <= 20;
        for (std::size_t i = sign; i < text_of.size(); ++i) digits = digits && text_of[i] >= '0' && text_of[i] <= '9';
        require(digits, "'" + text_of.substr(0, 40) + "' is no whole number");
        errno = 0;
        const long long value = std::strtoll(text_of.c_str(), nullptr, 10);
        require(errno == 0 && value >= least && value <= most, text_of + " is out of its range");
        return value;
    }

    double real(double least) {
        const std::string text_of = word();
        const std::size_t sign = !text_of.empty() && text_of[0] == '-';
        require(text_of.compare(sign, 2, "0x") == 0, "'" + text_of.substr(0, 40) + "' is no hexadecimal double");
        char* end = nullptr;
        const double value = std::strtod(text_of.c_str(), &end);
        require(*end == 0 && std::isfinite(value) && value >= least, text_of.substr(0, 40) + " is out of its range");
        return value + 0.0; // -0 becomes 0
    }

    void finished() { require(at == text.size() + 1, "a line has too many entries"); }

    const std::string& whole() const { return text; }

private:
    std::string text;
    std::size_t at = 0;
};

// ---------------------------------------------------------------------- the problem

enum class Loss { errors, squared, absolute, deviance };

struct Problem {
    Loss loss = Loss::errors;
    int depth = 0, n = 0, p = 0, T = 1, K = 0;
    Int N_min = 1;
    double split_cost = 0, unit = 1, level = 0.5;
    std::vector<double> costs, y, weight, X; // X feature by feature; y and costs target by target for each sample

    // What label k of target t costs a sample.
    double cost(int i, int t, int k) const {
        return costs[(std::size_t(t) * K + std::size_t(y[std::size_t(i) * T + t])) * K + k];
    }
    double x(int f, int i) const { return X[std::size_t(f) * n + i]; }
};

struct Grid {
    int loss = 0, weight = 0, target = 0;
    std::vector<double> centre; // target by target
    Int error = 0;
};

// Losses of samples in units of the grid: M predictions of each, target by target; of losses by sums weight, targets, and
// the loss beside the centre. A unit of what leaves save is `unit` of those of the grid; of the deviance, 2^bits targets are a weight.
struct Losses {
    int M = 0, T = 1, bits = 0;
    Loss kind = Loss::errors;
    long double unit = 0;
    Int split_cost = 0;
    Wide moved = 0; // what trees within limits on labels lose at least beside the table, which has prices
    std::vector<Int> table;

    const Int* of(int i) const { return &table[std::size_t(i) * M]; }
    bool by_sums() const { return kind == Loss::squared || kind == Loss::deviance; }
};

Problem read_problem(Line& line) {
    Problem problem;
    line.next("problem");
    const std::string loss = line.word();
    const std::map<std::string, Loss> kinds{{"errors", Loss::errors},
                                            {"squared", Loss::squared},
                                            {"absolute", Loss::absolute},
                                            {"deviance", Loss::deviance}};
    require(kinds.count(loss) > 0, "there is no such loss");
    problem.loss = kinds.at(loss);
    const bool classes = problem.loss == Loss::errors, vectors = classes || problem.loss == Loss::squared;
    problem.depth = int(line.integer(1, MAX_LEVELS));
    problem.n = int(line.integer(1, MAX_CELLS));
    problem.p = int(line.integer(1, MAX_CELLS));
    problem.T = int(line.integer(1, vectors ? 1000 : 1));
    require(Int(problem.n) * (Int(problem.p) + problem.T + 1) <= MAX_CELLS, "the samples are too many");
    problem.K = int(line.integer(classes ? 1 : 0, classes ? 1000 : 0));
    require(Int(std::max(problem.n, problem.K)) * problem.T * problem.K <= MAX_CELLS, "the classes are too many");
    problem.N_min = line.integer(1, Int(1) << 31);
    problem.split_cost = line.real(0);
    problem.unit = line.real(0);
    require(problem.unit > 0, "the unit is 0");
    problem.level = line.real(0);
    require(problem.level > 0 && problem.level < 1, "the level of a quantile is not between 0 and 1");
    require(problem.loss == Loss::absolute || problem.level == 0.5, "only quantiles have a level");
    line.finished();
    for (int k = 0; k < problem.T * problem.K; ++k) {
        line.next("cost");
        for (int l = 0; l < problem.K; ++l) problem.costs.push_back(line.real(0));
        line.finished();
    }
    problem.X.resize(std::size_t(problem.n) * problem.p);
    for (int i = 0; i < problem.n; ++i) {
        line.next("sample");
        for (int t = 0; t < problem.T; ++t) {
            const double y = line.real(-HUGE_VAL);
            problem.y.push_back(y);
            require(!classes || (y == std::floor(y) && y >= 0 && y < problem.K), "a class is none of those that have costs");
        }
        problem.weight.push_back(line.real(0));
        require(problem.weight.back() > 0, "a weight is 0");
        for (int f = 0; f < problem.p; ++f) problem.X[std::size_t(f) * problem.n + i] = line.real(-HUGE_VAL);
        line.finished();
    }
    return problem;
}

// A double as a whole number of 53 bits times a power of two.
struct Parts {
    Int mantissa;
    int exponent;

    explicit Parts(double value) {
        mantissa = Int(std::ldexp(std::frexp(value, &exponent), 53));
        exponent -= 53;
    }
};

// ---------------------------------------------------------------------- constraints

using Features = std::set<int>;

struct Range {
    int first, last;
};

// Trees: by node the thresholds that it may split at, whether it has to split, and sets of features of which each tree
// uses one.
struct Box {
    std::vector<std::map<int, Range>> splits;
    std::vector<bool> must;
    std::vector<Features> used;

    void remove(int t, const Features& out) {
        for (int f : out) splits[t].erase(f);
    }

    void settle() {
        for (int t = int(must.size()) - 1; t > 0; --t)
            if (must[t]) must[(t - 1) / 2] = true;
        for (int t = 1; t < int(must.size()); ++t)
            if (splits[(t - 1) / 2].empty()) splits[t].clear();
    }
};

// A sum of costs and a limit, compared in whole multiples of a power of two; doubles of very different sizes are refused.
struct Limit {
    double most;
    std::vector<double> costs;

    bool exceeded(const std::vector<bool>& counts) const {
        Wide total = 0;
        int least = 0;
        std::vector<double> terms{-most};
        for (std::size_t k = 0; k < costs.size(); ++k)
            if (counts[k]) terms.push_back(costs[k]);
        for (double term : terms) {
            const Parts parts(std::fabs(term));
            if (parts.mantissa != 0) least = std::min(least, parts.exponent);
        }
        for (double term : terms) {
            const Parts parts(std::fabs(term));
            if (parts.mantissa == 0) continue;
            require(parts.exponent - least < 60, "the numbers of a limit differ too much in size");
            const Wide part = Wide(parts.mantissa) << (parts.exponent - least);
            total += term < 0 ? -part : part;
        }
        return total > 0;
    }
};

// A limit on the sum over the samples of what their labels use, and what the proof charges for a unit of it.
struct LabelLimit {
    double most, price;
    std::vector<double> use; // sample by sample
};

struct Constraints {
    Box box;
    std::vector<LabelLimit> labels;
    std::vector<int> group;
    std::vector<std::pair<Limit, std::vector<Features>>> used;
    std::vector<Features> required;
    std::vector<Limit> splits;
    bool has_limits = false, empties = false;

    // Whether no tree of a box keeps all limits, as far as its decisions say.
    bool excludes(const Box& own) const {
        std::vector<Features> known = own.used;
        for (std::size_t t = 0; t < own.must.size(); ++t) {
            if (!own.must[t]) continue;
            if (own.splits[t].empty()) return true;
            Features here;
            for (const auto& entry : own.splits[t]) here.insert(entry.first);
            known.push_back(here);
        }
        for (const auto& [limit, groups] : used) {
            std::vector<bool> counts;
            for (const Features& group : groups) {
                bool is_used = false;
                for (const Features& some : known)
                    is_used = is_used || std::includes(group.begin(), group.end(), some.begin(), some.end());
                counts.push_back(is_used);
            }
            if (limit.exceeded(counts)) return true;
        }
        for (const Features& group : required) {
            bool any = false;
            for (const auto& node : own.splits)
                for (const auto& entry : node) any = any || group.count(entry.first) > 0;
            if (!any) return true;
        }
        for (const Limit& limit : splits)
            if (limit.exceeded(own.must)) return true;
        return false;
    }
};

Features read_features(Line& line, int p) {
    Features found;
    while (line.more()) require(found.insert(int(line.integer(0, p - 1))).second, "a feature stands twice");
    require(!found.empty(), "a set of features is empty");
    return found;
}

// Reads the constraints, and the first word of the line behind them.
Constraints read_constraints(Line& line, const Problem& problem) {
    Constraints found;
    const int p = problem.p, B = (1 << problem.depth) - 1;
    require(Int(B) * p <= MAX_CELLS, "the nodes are too many");
    std::map<int, Range> every;
    std::vector<int> last;
    for (int f = 0; f < p; ++f) {
        std::vector<double> values;
        for (int i = 0; i < problem.n; ++i) values.push_back(problem.x(f, i));
        std::sort(values.begin(), values.end());
        last.push_back(int(std::unique(values.begin(), values.end()) - values.begin()) - 1);
        if (last[f] > 0) every[f] = {1, last[f]};
    }
    found.box.splits.assign(B, every);
    found.box.must.assign(B, false);
    found.group.assign(p, -1);
    int next_node = 0;
    for (;;) {
        line.next("");
        const std::string key = line.word();
        if (key == "grid") break;
        if (key == "node") {
            const int t = int(line.integer(next_node, B - 1));
            next_node = t + 1;
            found.box.must[t] = line.integer(0, 1) == 1;
            found.box.splits[t].clear();
            for (int least = 0; line.more();) {
                const int f = int(line.integer(least, p - 1));
                least = f + 1;
                const int begin = int(line.integer(1, last[f]));
                found.box.splits[t][f] = {begin, int(line.integer(begin, last[f]))};
            }
        } else if (key == "once") {
            for (int& group : found.group) group = int(line.integer(-1, p - 1));
        } else if (key == "require") {
            found.required.push_back(read_features(line, p));
        } else if (key == "labels") {
            require(problem.loss == Loss::errors && problem.T == 1, "limits on labels are for errors of one target");
            require(found.labels.size() < 1000 && Int(found.labels.size() + 1) * problem.n * problem.K <= MAX_CELLS,
                    "the limits on labels are too many");
            LabelLimit limit{line.real(-HUGE_VAL), line.real(0), {}};
            for (int i = 0; i < problem.n; ++i) {
                line.finished();
                line.next("use");
                for (int k = 0; k < problem.K; ++k) limit.use.push_back(line.real(-HUGE_VAL));
            }
            found.labels.push_back(limit);
        } else if (key == "splits") {
            Limit limit{line.real(0), {}};
            for (int t = 0; t < B; ++t) limit.costs.push_back(line.real(0));
            found.splits.push_back(limit);
        } else {
            require(key == "used", "no line 'grid' in its place");
            Limit limit{line.real(0), {}};
            std::vector<Features> groups;
            const Int number = line.integer(1, MAX_CELLS);
            line.finished();
            for (Int k = 0; k < number; ++k) {
                line.next("group");
                limit.costs.push_back(line.real(0));
                groups.push_back(read_features(line, p));
                if (k + 1 < number) line.finished();
            }
            found.used.push_back({limit, groups});
        }
        line.finished();
    }
    found.has_limits = !found.used.empty() || !found.required.empty() || !found.splits.empty();
    found.empties = !found.required.empty() || !found.splits.empty();
    for (bool has_to : found.box.must) found.empties = found.empties || has_to;
    // A split that parts nothing may stand above one that its own node may not have.
    for (int t = 1; t < B; ++t) {
        const auto& above = found.box.splits[(t - 1) / 2];
        for (const auto& [f, range] : found.box.splits[t]) {
            const auto own = above.find(f);
            const bool inside = own != above.end() && own->second.first <= range.first && range.last <= own->second.last;
            found.empties = found.empties || !inside;
        }
    }
    found.box.settle();
    return found;
}

Grid read_grid(Line& line, const Problem& problem) {
    Grid grid;
    for (int* exponent : {&grid.loss, &grid.weight, &grid.target})
        *exponent = int(line.integer(-MAX_EXPONENT, MAX_EXPONENT));
    const bool centred = problem.loss == Loss::squared || problem.loss == Loss::deviance;
    for (int t = 0; t < problem.T; ++t) {
        grid.centre.push_back(line.real(-HUGE_VAL));
        require(centred || grid.centre[t] == 0, "only losses by sums have a centre");
    }
    grid.error = line.integer(0, MOST - 1);
    line.finished();
    return grid;
}

// The product of two doubles, at least 0, in units of 2^-s, rounded down; or up, if it is no whole number.
Int product_of(double a, double b, int s, bool up) {
    const Parts x(a), y(b);
    const Wide product = Wide(x.mantissa) * y.mantissa;
    const int by = x.exponent + y.exponent + s;
    if (product == 0) return 0;
    if (by <= -127) return up;
    const Wide scaled = by > 0 ? (by < 64 && product < (Wide(1) << (126 - by)) ? product << by : Wide(MOST)) : product >> -by;
    require(scaled < MOST, "a loss is beyond the grid");
    return Int(scaled) + (up && by < 0 && (scaled << -by) != product);
}

Int product_down(double a, double b, int s) { return product_of(a, b, s, false); }

// The same for a number of any sign beside one of at least 0.
Int signed_product(double price, double use, int s, bool up) {
    return use >= 0 ? product_of(price, use, s, up) : -product_of(price, -use, s, !up);
}

Int scaled_down(double value, int s) {
    const double scaled = std::floor(std::ldexp(value, s));
    require(scaled < double(MOST), "a number is beyond the grid");
    return Int(scaled);
}

// Adds the prices of limits to what labels lose, and takes the least loss of every sample out.
void charge_limits(const Problem& problem, const std::vector<LabelLimit>& limits, const Grid& grid, Losses& losses) {
    for (const LabelLimit& limit : limits) {
        for (std::size_t at = 0; at < losses.table.size(); ++at)
            losses.table[at] += signed_product(limit.price, limit.use[at], grid.loss, false);
        losses.moved -= signed_product(limit.price, limit.most, grid.loss, true);
    }
    for (int i = 0; i < problem.n; ++i) {
        const auto row = losses.table.begin() + std::ptrdiff_t(i) * losses.M;
        const Int least = *std::min_element(row, row + losses.M);
        losses.moved += least;
        for (auto at = row; at != row + losses.M; ++at) *at -= least;
    }
}

// ln x of x > 0, by 2 (z + z^3 / 3 + z^5 / 5 + ...) with z = (m - 1) / (m + 1) of its mantissa m from 1/2 to 1.
long double logarithm(long double x) {
    int exponent;
    const long double m = std::frexp(x, &exponent), z = (m - 1) / (m + 1), y = z * z;
    long double total = 0;
    for (int k = 81; k > 0; k -= 2) total = total * y + 1.0L / k; // y is at most 1/9: the rest is below 2^-120
    return exponent * 0.693147180559945309417232121458176568L + 2 * z * total;
}

// (t + u) ln((t + u) / t) - u, 0 where t is 0: near 0 as t (d^2 / (1 2) - d^3 / (2 3) + d^4 / (3 4) - ...), d = u / t.
long double excess(long double u, long double t) {
    if (t <= 0) return 0;
    const long double d = u / t;
    if (std::fabs(d) > 0.5L) return t + u > 0 ? (t + u) * logarithm((t + u) / t) - u : -u;
    long double total = 0, power = d;
    for (int k = 2; k < 72; ++k) {
        power *= k > 2 ? -d : d;
        const long double term = power / ((long double)k * (k - 1));
        total += term;
        if (std::fabs(term) < 0x1p-80L * total) break; // all further ones together are less than twice that
    }
    return t * total;
}

// Rounds rates, and what they lose beside the centre.
void round_rates(const Problem& problem, const Grid& grid, Losses& losses) {
    const double centre = grid.centre[0];
    require(centre > 0, "the centre of rates is not above 0");
    require(grid.target >= 0 && grid.target <= MAX_OF_RATES, "the grid of rates is out of its range");
    const int by = grid.loss - grid.weight - grid.target, size = Parts(centre).exponent + 53 + by;
    require(size >= -300 && size <= 300, "the grids do not fit each other");
    losses.unit = std::ldexp(centre, by);
    losses.bits = grid.target;
    long double least = HUGE_VALL, most = 0, all = 0, lightest = HUGE_VALL;
    bool zero = false;
    Int some = 0;
    for (int i = 0; i < problem.n; ++i) {
        const Int w = scaled_down(problem.weight[i], grid.weight);
        const double y = problem.y[i];
        require(y >= 0, "a rate is less than 0");
        const double away = y - centre;
        const double share = away / centre;
        const double weighted = double(w) * share;
        const long double t = std::ldexp((long double)w, grid.target);
        long double target = std::nearbyint(std::ldexp(weighted, grid.target));
        if (w > 0 && y > 0) target = std::max(target, 1 - t);
        require(w == 0 || std::fabs(target) < MOST, "a rate is beyond the grid");
        const Int u = w == 0 ? 0 : Int(target);
        const long double q = std::floor(excess(u, t) * (1 - LOGARITHM) * losses.unit);
        require(q < MOST, "a loss is beyond the grid");
        losses.table.insert(losses.table.end(), {w, u, Int(q)});
        all += w;
        if (w == 0) continue;
        zero = zero || y == 0;
        if (y == 0) continue;
        ++some;
        lightest = std::min(lightest, (long double)w);
        least = std::min(least, (t + u) / t);
        most = std::max(most, (t + u) / t);
    }
    if (some == 0) return;
    long double ratio = most / least;
    if (zero) ratio = std::max(ratio, all / lightest);
    int exponent;
    std::frexp(ratio, &exponent);
    const long double growth = std::min(ratio * (1 + RAISED) - 1, (long double)exponent);
    require(grid.error >= 3 * some * growth * losses.unit, "the error of the grid is too small");
}

Losses round_losses(const Problem& problem, const std::vector<LabelLimit>& limits, const Grid& grid) {
    Losses losses;
    const int n = problem.n;
    losses.kind = problem.loss;
    losses.T = problem.T;
    losses.split_cost = scaled_down(problem.split_cost, grid.loss);
    if (problem.loss == Loss::errors) {
        losses.M = problem.T * problem.K;
        losses.table.reserve(std::size_t(n) * losses.M);
        for (int i = 0; i < n; ++i)
            for (int t = 0; t < problem.T; ++t)
                for (int k = 0; k < problem.K; ++k)
                    losses.table.push_back(product_down(problem.weight[i], problem.cost(i, t, k), grid.loss));
        if (!limits.empty()) charge_limits(problem, limits, grid, losses);
    } else if (problem.loss == Loss::squared) {
        losses.M = problem.T + 2;
        const int shift = grid.weight + 2 * grid.target - grid.loss;
        require(shift >= 0 && shift <= 120, "the grids do not fit each other");
        losses.unit = std::ldexp(1.0L, -shift);
        long double missed = 0, total = 0;
        for (int i = 0; i < n; ++i) {
            const Int w = scaled_down(problem.weight[i], grid.weight);
            losses.table.push_back(w);
            Wide squares = 0;
            for (int t = 0; t < problem.T; ++t) {
                const double away = problem.y[std::size_t(i) * problem.T + t] - grid.centre[t];
                const double weighted = double(w) * away;
                const double target = std::nearbyint(std::ldexp(weighted, grid.target));
                require(std::fabs(target) < double(MOST), "a target is beyond the grid");
                const Int u = w == 0 ? 0 : Int(target);
                squares += Wide(u) * u; // 1000 squares below 2^104
                losses.table.push_back(u);
            }
            const Wide q = w == 0 ? 0 : (squares >> shift) / w;
            require(q < MOST, "a loss is beyond the grid");
            if (w > 0) missed += 4.0L * problem.T / w;
            total += (long double)q + 1;
            losses.table.push_back(Int(q));
        }
        const long double needed = std::ldexp(4 * missed * total, -shift) * (1 + 1e-12L);
        require((long double)grid.error * grid.error >= needed, "the error of the grid is too small");
    } else if (problem.loss == Loss::deviance) {
        losses.M = 3;
        round_rates(problem, grid, losses);
    } else {
        const int shift = grid.weight + grid.target - grid.loss;
        require(shift >= 0 && shift <= 60, "the grids do not fit each other");
        std::vector<Int> y, values;
        for (double target : problem.y) {
            const double scaled = std::nearbyint(std::ldexp(target, grid.target));
            require(std::fabs(scaled) < double(MOST), "a target is beyond the grid");
            y.push_back(Int(scaled));
        }
        values = y;
        std::sort(values.begin(), values.end());
        values.erase(std::unique(values.begin(), values.end()), values.end());
        losses.M = int(values.size());
        require(Int(n) * losses.M <= MAX_CELLS, "the targets are too many");
        // Twice the level, and the greatest double of at most twice what it is less than 1 by.
        const double rest = 1 - problem.level, low = 2 * problem.level;
        const double high = 2 * (1 - rest < problem.level ? std::nextafter(rest, 0.0) : rest);
        Wide total = 0;
        for (int i = 0; i < n; ++i) {
            const Int above = product_down(problem.weight[i], low, grid.weight);
            const Int below = product_down(problem.weight[i], high, grid.weight);
            total += std::max(above, below);
            for (Int value : values) {
                const Int w = y[i] > value ? above : below;
                const Wide loss = Wide(w) * std::llabs(y[i] - value);
                require(loss < Wide(1) << 62 && loss >> shift < MOST, "a loss is beyond the grid");
                losses.table.push_back(Int(loss >> shift));
            }
        }
        require((Wide(grid.error) << (shift + 1)) >= total, "the error of the grid is too small");
    }
    for (int k = 0; k < losses.M; ++k) {
        Wide total = 0;
        for (int i = 0; i < n; ++i) total += std::llabs(losses.of(i)[k]);
        require(total < MOST, "the samples lose more than the grid has");
    }
    return losses;
}

// ---------------------------------------------------------------------- the tree

// With a label, or with the best one where that is -1.
long double loss_of_leaf(const Problem& problem, const std::vector<int>& rows, int label) {
    long double weight = 0, sum = 0, loss = 0, middle = 0;
    if (problem.loss == Loss::errors) {
        for (int t = 0; t < problem.T; ++t) {
            long double least = HUGE_VALL;
            for (int k = std::max(label, 0); k < (label < 0 ? problem.K : label + 1); ++k) {
                long double total = 0;
                for (int i : rows) total += (long double)problem.weight[i] * problem.cost(i, t, k);
                least = std::min(least, total);
            }
            loss += least;
        }
        return loss;
    }
    if (problem.loss == Loss::squared) {
        for (int i : rows) weight += problem.weight[i];
        for (int t = 0; t < problem.T; ++t) {
            const auto y = [&](int i) { return (long double)problem.y[std::size_t(i) * problem.T + t]; };
            sum = 0;
            for (int i : rows) sum += problem.weight[i] * y(i);
            for (int i : rows) loss += problem.weight[i] * (y(i) - sum / weight) * (y(i) - sum / weight);
        }
        return loss;
    }
    for (int i : rows) weight += problem.weight[i], sum += (long double)problem.weight[i] * problem.y[i];
    if (problem.loss != Loss::absolute) {
        middle = sum / weight;
    } else {
        std::vector<int> sorted(rows);
        std::sort(sorted.begin(), sorted.end(), [&](int i, int j) { return problem.y[i] < problem.y[j]; });
        long double seen = 0;
        for (int i : sorted) {
            seen += problem.weight[i];
            middle = problem.y[i];
            if (seen >= problem.level * weight) break;
        }
    }
    for (int i : rows) {
        const long double away = problem.y[i] - middle;
        if (problem.loss == Loss::deviance) loss += problem.weight[i] * excess(away, middle);
        if (problem.loss == Loss::absolute)
            loss += 2 * problem.weight[i] * std::max(problem.level * away, (problem.level - 1.0L) * away);
    }
    return loss;
}

struct Split {
    int feature;
    double threshold;
};

// What a claimed tree is found to do: which nodes split, and the label of each sample under limits on labels.
struct Routed {
    const std::vector<int>& leaves;
    std::vector<bool> splits;
    std::vector<int> labels;
};

// Whether labels use more than a limit: in whole multiples of a power of two, from doubles of similar sizes.
bool exceeds(const LabelLimit& limit, const std::vector<int>& labels, int K) {
    std::vector<double> terms{-limit.most};
    for (std::size_t i = 0; i < labels.size(); ++i) terms.push_back(limit.use[i * K + labels[i]]);
    int least = 0;
    for (double term : terms)
        if (term != 0) least = std::min(least, Parts(std::fabs(term)).exponent);
    Wide total = 0;
    for (double term : terms) {
        if (term == 0) continue;
        const Parts parts(std::fabs(term));
        require(parts.exponent - least < 45, "the numbers of a limit on labels differ too much in size");
        const Wide part = Wide(parts.mantissa) << (parts.exponent - least);
        total += term < 0 ? -part : part;
    }
    return total > 0;
}

// The value of a tree; marks the nodes that split.
long double value_of(const Problem& problem, const Constraints& constraints, const std::vector<Split>& tree,
                     std::size_t node, const std::vector<int>& rows, Routed& found) {
    const int f = node < tree.size() ? tree[node].feature : -1;
    if (f < 0) {
        const int label = found.leaves.empty() ? -1 : found.leaves[node];
        require(found.leaves.empty() || label >= 0, "a leaf of the claimed tree has no label");
        if (rows.empty() && constraints.empties) return 0;
        require(Int(rows.size()) >= problem.N_min, "a leaf of the claimed tree is too small");
        for (int i : rows) found.labels[i] = label;
        return loss_of_leaf(problem, rows, label);
    }
    found.splits[node] = true;
    std::vector<int> left, right;
    for (int i : rows) (problem.x(f, i) >= tree[node].threshold ? right : left).push_back(i);
    return problem.split_cost + value_of(problem, constraints, tree, 2 * node + 1, left, found) +
           value_of(problem, constraints, tree, 2 * node + 2, right, found);
}

// Refuses a tree outside the constraints.
void require_within(const Problem& problem, const Constraints& constraints, const std::vector<Split>& tree,
                    const Routed& found) {
    const std::vector<bool>& splits = found.splits;
    for (const LabelLimit& limit : constraints.labels)
        require(!exceeds(limit, found.labels, problem.K), "the labels of the claimed tree use more than a limit");
    Features used;
    for (std::size_t t = 0; t < tree.size(); ++t) {
        require(splits[t] || !constraints.box.must[t], "a node of the claimed tree has to split, and does not");
        if (!splits[t]) continue;
        const int f = tree[t].feature;
        std::set<double> below;
        for (int i = 0; i < problem.n; ++i)
            if (problem.x(f, i) < tree[t].threshold) below.insert(problem.x(f, i));
        const auto range = constraints.box.splits[t].find(f);
        require(range != constraints.box.splits[t].end() && range->second.first <= int(below.size()) &&
                    int(below.size()) <= range->second.last,
                "a node of the claimed tree splits where it may not");
        for (std::size_t s = t; s > 0 && constraints.group[f] >= 0;) {
            s = (s - 1) / 2;
            require(constraints.group[tree[s].feature] != constraints.group[f], "a feature comes again on a path");
        }
        used.insert(f);
    }
    for (const auto& [limit, groups] : constraints.used) {
        std::vector<bool> counts;
        for (const Features& group : groups)
            counts.push_back(std::any_of(group.begin(), group.end(), [&](int f) { return used.count(f) > 0; }));
        require(!limit.exceeded(counts), "the claimed tree exceeds a limit on features");
    }
    for (const Features& group : constraints.required)
        require(std::any_of(group.begin(), group.end(), [&](int f) { return used.count(f) > 0; }),
                "the claimed tree does not use what is required");
    for (const Limit& limit : constraints.splits)
        require(!limit.exceeded(splits), "the claimed tree exceeds a limit on splits");
}

// The least loss that a tree may have from a bound on: whole weights and costs make a whole number of errors.
Wide raised(const Problem& problem, const Grid& grid, Wide units) {
    bool whole = grid.loss >= 0 && grid.loss < 64;
    for (double number : problem.weight) whole = whole && number == std::floor(number);
    for (double number : problem.costs) whole = whole && number == std::floor(number);
    if (!whole) return units;
    const Wide step = Wide(1) << grid.loss;
    const Int down = product_of(problem.split_cost, 1, grid.loss, false), up = product_of(problem.split_cost, 1, grid.loss, true);
    Wide least = -1;
    for (int splits = 0; splits < 1 << problem.depth; ++splits) {
        const Wide rest = units - Wide(splits) * up;
        const Wide errors = rest <= 0 ? 0 : (rest + step - 1) / step;
        const Wide loss = errors * step + Wide(splits) * down;
        if (least < 0 || loss < least) least = loss;
    }
    return std::max(units, least);
}

// Whether a bound on the objective, times the unit, is at most a number of units of the grid: in whole numbers.
bool follows(double bound, double unit, Wide units, int s) {
    const Parts x(bound), y(unit);
    const Wide product = Wide(x.mantissa) * y.mantissa;
    const int by = x.exponent + y.exponent + s;
    if (product == 0) return true;
    if (by >= 0) return by < 60 && product < (Wide(1) << (126 - by)) && (product << by) <= units;
    if (by < -120) return units >= 1;
    return ((product + (Wide(1) << -by) - 1) >> -by) <= units;
}

// ---------------------------------------------------------------------- the proof

class Proof {
public:
    Proof(const Problem& problem, const Losses& losses, const Constraints& constraints, Line& line)
        : losses(losses), constraints(constraints), box(constraints.box), line(line), n(problem.n), p(problem.p) {
        rank.resize(std::size_t(p) * n);
        for (int f = 0; f < p; ++f) {
            std::vector<double> values;
            for (int i = 0; i < n; ++i) values.push_back(problem.x(f, i));
            std::sort(values.begin(), values.end());
            values.erase(std::unique(values.begin(), values.end()), values.end());
            count.push_back(int(values.size()));
            for (int i = 0; i < n; ++i)
                rank[std::size_t(f) * n + i] =
                    int(std::lower_bound(values.begin(), values.end(), problem.x(f, i)) - values.begin());
        }
    }

    // Rows of a claim in the order of every feature.
    using Rows = std::vector<std::vector<int>>;

    Rows all() const {
        Rows rows(p);
        for (int f = 0; f < p; ++f) {
            for (int i = 0; i < n; ++i) rows[f].push_back(i);
            std::sort(rows[f].begin(), rows[f].end(), [&](int i, int j) { return of(f, i) < of(f, j); });
        }
        return rows;
    }

    // Checks the claim of every box.
    void check_all(int depth, Int least, Int b) {
        if (!constraints.has_limits) {
            check(all(), depth, least, b, 0, {});
            return;
        }
        std::vector<Box> boxes{constraints.box};
        while (!boxes.empty()) {
            Box own = boxes.back();
            boxes.pop_back();
            line.next("");
            const std::string step = line.word();
            if (step == "none") {
                require(constraints.excludes(own), "a box is said to have no tree, and keeps every limit");
            } else if (step == "claim") {
                line.finished();
                box = own;
                check(all(), depth, least, b, 0, {});
                continue;
            } else {
                require(step == "branch", "no line 'branch', 'none' or 'claim' in its place");
                const int t = int(line.integer(-1, Int(own.must.size()) - 1));
                std::vector<int> features{int(line.integer(0, p - 1))};
                while (line.more()) features.push_back(int(line.integer(0, p - 1)));
                const Features out(features.begin(), features.end());
                Box without = own;
                for (int s = 0; s < int(own.must.size()); ++s)
                    if (t < 0 || s == t) without.remove(s, out);
                without.settle();
                if (t < 0) {
                    own.used.push_back(out);
                } else {
                    Features others;
                    for (const auto& entry : own.splits[t])
                        if (out.count(entry.first) == 0) others.insert(entry.first);
                    own.remove(t, others);
                    own.must[t] = true;
                    own.settle();
                }
                boxes.push_back(own);
                boxes.push_back(without);
            }
            line.finished();
        }
    }

    // Groups that came above a node, of features that come once on a path.
    using Groups = std::set<int>;

    void check(const Rows& rows, int levels, Int least, Int b, int node, const Groups& above) {
        const Int size = Int(rows[0].size());
        if (b <= floor_of(node) || (size < least && (size > 0 || !constraints.empties))) return;
        ++claims;
        require(size > 0, "a claim is made of no samples");
        if (levels == 1) {
            // With an interval before the first value, all rows are on its right.
            const Int one = best(rows, 0, 0, 0, least, {node, node}, above).second;
            require(one >= b, "one leaf or one split loses " + std::to_string(one) + ", claimed " + std::to_string(b));
            return;
        }
        if (!box.must[node]) {
            std::vector<Int> total(losses.M, 0);
            for (int i : rows[0])
                for (int k = 0; k < losses.M; ++k) total[k] += losses.of(i)[k];
            require(leaf(total) >= b, "one leaf loses " + std::to_string(leaf(total)) + ", claimed " + std::to_string(b));
        }
        for (const auto& [f, range] : box.splits[node]) {
            if (above.count(constraints.group[f]) > 0) continue;
            Groups below = above;
            if (constraints.group[f] >= 0) below.insert(constraints.group[f]);
            int low = range.first;
            line.next("");
            if (levels == 2) {
                while (low <= range.last) {
                    const int high = int(line.integer(low, range.last));
                    const Int fewer = at_least(rows, f, low, high, least);
                    const auto [left, right] = best(rows, f, low, high, fewer, {2 * node + 1, 2 * node + 2}, below);
                    require(left + right + losses.split_cost >= b,
                            "thresholds " + std::to_string(low) + " to " + std::to_string(high) + " of feature " +
                                std::to_string(f) + " lose " + std::to_string(left + right + losses.split_cost) +
                                ", claimed " + std::to_string(b));
                    low = high + 1;
                    ++intervals;
                }
                line.finished();
                continue;
            }
            const Int number = line.integer(1, count[f] - 1);
            line.finished();
            for (Int k = 0; k < number; ++k) {
                line.next("");
                const int high = int(line.integer(low, range.last));
                const Int left = line.integer(-NEVER, NEVER);
                line.finished();
                const Int right = b - losses.split_cost - left, fewer = at_least(rows, f, low, high, least);
                ++intervals;
                check(part(rows, f, 0, low), levels - 1, fewer, left, 2 * node + 1, below);
                check(part(rows, f, high, count[f]), levels - 1, fewer, right, 2 * node + 2, below);
                low = high + 1;
            }
            require(low == range.last + 1, "not all thresholds of feature " + std::to_string(f) + " are closed");
        }
    }

    Int claims = 0, intervals = 0;

private:
    // What the splits below a node cost that have to be there, its own one included.
    Int floor_of(int node) const {
        if (node >= int(box.must.size())) return 0;
        return (box.must[node] ? losses.split_cost : 0) + floor_of(2 * node + 1) + floor_of(2 * node + 2);
    }

    int of(int f, int i) const { return rank[std::size_t(f) * n + i]; }

    Rows part(const Rows& rows, int f, int first, int beyond) const {
        Rows some(p);
        for (int g = 0; g < p; ++g)
            for (int i : rows[g])
                if (of(f, i) >= first && of(f, i) < beyond) some[g].push_back(i);
        return some;
    }

    // Least size of leaves among the rows beside an interval: those between may fill a leaf up.
    Int at_least(const Rows& rows, int f, int low, int high, Int least) const {
        if (least == 0) return 0;
        for (int i : rows[f]) least -= of(f, i) >= low && of(f, i) < high;
        return least > 1 ? least : 0;
    }

    // What the predictions of one leaf save beside the centre, before it is raised.
    long double saved(const std::vector<Int>& sums) const {
        const Int w = sums[0];
        if (losses.kind == Loss::deviance) return excess(sums[1], std::ldexp((long double)w, losses.bits));
        long double total = 0;
        for (int t = 1; t <= losses.T; ++t) total += (long double)sums[t] * sums[t];
        return w > 0 ? total / w : 0;
    }

    // What leaves lose by sums: all before the centre less what is saved, raised.
    Int lost(Int all, long double total) const {
        const long double share = losses.kind == Loss::deviance ? LOGARITHM : RAISED * losses.T;
        return std::max(Int(0), all - Int(std::ceil(total * (1 + share) * losses.unit)) - 1);
    }

    // The least losses by table, target by target.
    Int cheapest(const std::vector<Int>& sums) const {
        Int loss = 0;
        const int K = losses.M / losses.T;
        for (auto at = sums.begin(); at != sums.end(); at += K) loss += *std::min_element(at, at + K);
        return loss;
    }

    Int leaf(const std::vector<Int>& total) const {
        return losses.by_sums() ? lost(total.back(), saved(total)) : cheapest(total);
    }

    Int leaves(const std::vector<Int>& total, const std::vector<Int>& before) const {
        std::vector<Int> rest(total);
        for (int k = 0; k < losses.M; ++k) rest[k] -= before[k];
        if (losses.by_sums()) return lost(total.back(), saved(before) + saved(rest));
        return cheapest(before) + cheapest(rest);
    }

    // Least losses of at most one split, for the rows below one rank of f and from another one on, at two nodes.
    std::pair<Int, Int> best(const Rows& rows, int f, int below, int first, Int least, std::pair<int, int> nodes,
                             const Groups& above) const {
        std::vector<Int> total[2], before[2];
        Int size[2] = {0, 0}, found[2];
        const int node[2] = {nodes.first, nodes.second};
        for (auto& sums : total) sums.assign(losses.M, 0);
        const int* ranks = &rank[std::size_t(f) * n];
        for (int i : rows[0]) {
            if (ranks[i] >= below && ranks[i] < first) continue;
            const int side = ranks[i] >= below;
            ++size[side];
            for (int k = 0; k < losses.M; ++k) total[side][k] += losses.of(i)[k];
        }
        // A leaf holds enough samples, or none where that is allowed.
        const auto holds = [&](Int some) { return some >= least || (some == 0 && constraints.empties); };
        Int one[2];
        for (int side : {0, 1}) {
            one[side] = holds(size[side]) ? leaf(total[side]) : NEVER;
            found[side] = box.must[node[side]] ? NEVER : one[side];
        }
        for (int side : {0, 1}) {
            for (const auto& [g, range] : box.splits[node[side]]) {
                if (above.count(constraints.group[g]) > 0) continue;
                const int* own = &rank[std::size_t(g) * n];
                Int seen = 0;
                int last = -1;
                before[side].assign(losses.M, 0);
                // A split between two values that rows have, or beside all rows; thresholds from `last` + 1 to `next`.
                const auto split = [&](int next) {
                    if (std::max(last + 1, range.first) > std::min(next, range.last)) return;
                    if (seen == 0 || seen == size[side]) {
                        if (box.must[node[side]]) found[side] = std::min(found[side], one[side] + losses.split_cost);
                    } else if (holds(seen) && holds(size[side] - seen)) {
                        found[side] = std::min(found[side], losses.split_cost + leaves(total[side], before[side]));
                    }
                };
                for (int i : rows[g]) {
                    if (ranks[i] >= below && ranks[i] < first) continue;
                    if ((ranks[i] >= below) != (side == 1)) continue;
                    if (own[i] != last) split(own[i]);
                    last = own[i];
                    ++seen;
                    const Int* loss = losses.of(i);
                    for (int k = 0; k < losses.M; ++k) before[side][k] += loss[k];
                }
                split(count[g] - 1);
            }
        }
        return {std::min(found[0], NEVER), std::min(found[1], NEVER)};
    }

    const Losses& losses;
    const Constraints& constraints;
    Box box;
    Line& line;
    int n, p;
    std::vector<int> rank, count;
};

void check() {
    Line line;
    require(line.read(), "the file is empty");
    std::string first = line.whole();
    first.erase(std::remove(first.begin(), first.end(), ' '), first.end());
    require(first.compare(0, 1, "{") == 0, "the first line is no object");
    require(first.find("\"mipforest_certificate\":3") != std::string::npos, "no certificate of format 3");
    const Problem problem = read_problem(line);
    const Constraints constraints = read_constraints(line, problem);
    const Grid grid = read_grid(line, problem);
    const Losses losses = round_losses(problem, constraints.labels, grid);
    line.next("tree");
    const double objective = line.real(0);
    std::vector<Split> tree;
    for (int node = 0; node < (1 << problem.depth) - 1; ++node) {
        const int feature = int(line.integer(-1, problem.p - 1));
        tree.push_back({feature, line.real(-HUGE_VAL)});
    }
    line.finished();
    std::vector<int> every, leaves;
    if (!constraints.labels.empty()) {
        line.next("leaves");
        for (int node = 0; node < (2 << problem.depth) - 1; ++node)
            leaves.push_back(int(line.integer(-1, problem.K - 1)));
        line.finished();
    }
    for (int i = 0; i < problem.n; ++i) every.push_back(i);
    Routed found{leaves, std::vector<bool>(tree.size(), false), std::vector<int>(std::size_t(problem.n), 0)};
    const long double value = value_of(problem, constraints, tree, 0, every, found) / problem.unit;
    require_within(problem, constraints, tree, found);
    require(std::fabs(value - objective) <= NEARLY * value, "the claimed tree has another value");
    line.next("bound");
    const Int b = line.integer(0, MOST - 1);
    const double bound = line.real(0);
    line.finished();
    const Wide units = constraints.labels.empty() ? Wide(b) : raised(problem, grid, b + losses.moved);
    require(follows(bound, problem.unit, std::max(Wide(0), units - grid.error), grid.loss), "the losses prove less");
    Proof proof(problem, losses, constraints, line);
    proof.check_all(problem.depth, problem.N_min > 1 ? problem.N_min : 0, b);
    require(!line.read(), "a line after the end of the proof");
    std::printf("certified objective %.17g bound %.17g claims %lld intervals %lld\n", objective, bound,
                (long long)proof.claims, (long long)proof.intervals);
}

} // namespace

int main() {
    try {
        check();
        return 0;
    } catch (const Refused& fault) {
        std::printf("refused line %ld: %s\n", line_number, fault.what());
    } catch (const std::bad_alloc&) {
        std::printf("refused line %ld: it needs more memory than there is\n", line_number);
    }
    return 3;
}
