package unit

import (
	"math"
	"strconv"
	"strings"
)

// Value says v, in the base unit u, with an SI decimal prefix and three digits:
// "9.12 Gbit/s", "34.2 µs", "31.4 k/s". NaN and infinities are "not a number":
// a value that was not measured must not be formatted at all.
func Value(v float64, u string) string { return Estimate(v, math.NaN(), u) }

// Estimate says v ± halfwidth, both in the base unit u, with as many digits as
// the half-width bears: "9.12 Gbit/s ± 0.05". The larger of the two picks the
// prefix: "0.1 s ± 2.4", and not "60 ms ± 2354". A half-width that is NaN is left
// out.
func Estimate(v, halfwidth float64, u string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "not a number"
	}
	if u == "B" && !isWidth(halfwidth) && v == math.Trunc(v) && math.Abs(v) < 1e5 {
		return strconv.FormatFloat(v, 'f', 0, 64) + " B" // an MTU of 1500 is not 1.5 kB
	}
	largest := v
	if isWidth(halfwidth) {
		largest = math.Max(math.Abs(v), halfwidth)
	}
	p := scale(largest, u)
	digits := decimals(v/p.factor, halfwidth/p.factor)
	if p.next != nil && math.Abs(round(v/p.factor, digits)) >= 1000 {
		p = *p.next // 999.996 M is 1.00 G
		digits = decimals(1, halfwidth/p.factor)
	}
	v, halfwidth = v/p.factor, halfwidth/p.factor
	if v == math.Trunc(v) && (u == "" && !isWidth(halfwidth) || v == 0 && !(halfwidth > 0)) {
		digits = 0 // a count, or nothing at all
	}
	s := fixed(v, digits)
	if p.unit != "" {
		s += " " + p.unit
	}
	if isWidth(halfwidth) {
		s += " ± " + strconv.FormatFloat(halfwidth, 'f', digits, 64)
	}
	return s
}

// Interval says low to high, both in the base unit u: "9.07 to 9.17 Gbit/s".
func Interval(low, high float64, u string) string {
	if math.IsNaN(low+high) || math.IsInf(low, 0) || math.IsInf(high, 0) {
		return "not a number"
	}
	p := scale(high, u)
	digits := decimals(high/p.factor, (high-low)/2/p.factor)
	s := strconv.FormatFloat(low/p.factor, 'f', digits, 64) + " to " + strconv.FormatFloat(high/p.factor, 'f', digits, 64)
	if p.unit != "" {
		s += " " + p.unit
	}
	return s
}

// Percent says a ratio ± its half-width in percent: "93.4 % ± 0.5". A
// half-width that is NaN is left out.
func Percent(ratio, halfwidth float64) string {
	if math.IsNaN(ratio) || math.IsInf(ratio, 0) {
		return "not a number"
	}
	digits := decimals(100*ratio, 100*halfwidth)
	s := fixed(100*ratio, digits) + " %"
	if isWidth(halfwidth) {
		s += " ± " + strconv.FormatFloat(100*halfwidth, 'f', digits, 64)
	}
	return s
}

// Format says v ± halfwidth as people read the metric: a ratio in percent, all
// else with its unit. A half-width that is NaN is left out.
func (m Metric) Format(v, halfwidth float64) string {
	if m.IsRatio() {
		return Percent(v, halfwidth)
	}
	return Estimate(v, halfwidth, m.Unit)
}

// FormatInterval says low to high as people read the metric.
func (m Metric) FormatInterval(low, high float64) string {
	if m.IsRatio() {
		digits := decimals(100*high, 100*(high-low)/2)
		return strconv.FormatFloat(100*low, 'f', digits, 64) + " to " + strconv.FormatFloat(100*high, 'f', digits, 64) + " %"
	}
	return Interval(low, high, m.Unit)
}

// IsRatio tells whether the metric is a share that people read in percent.
func (m Metric) IsRatio() bool { return strings.HasSuffix(m.Name, "_ratio") }

// fixed is v with some digits behind the point; what rounds to nothing has no sign.
func fixed(v float64, digits int) string {
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if rest, ok := strings.CutPrefix(s, "-"); ok && strings.Trim(rest, "0.") == "" {
		return rest
	}
	return s
}

func isWidth(h float64) bool { return !math.IsNaN(h) && !math.IsInf(h, 0) && h >= 0 }

func round(v float64, digits int) float64 {
	p := math.Pow(10, float64(digits))
	return math.Round(v*p) / p
}

// decimals is how many digits behind the point a value is shown with. Without
// a half-width: three digits in all. With one: the half-width decides, by the
// Particle Data Group's rule (Review of Particle Physics, "Introduction",
// rounding): of its three leading digits, 100–354 keep two, 355–949 keep one,
// 950–999 round up and keep two. Never more than six digits in all.
func decimals(v, halfwidth float64) int {
	const most = 6
	magnitude := 0
	if v != 0 {
		magnitude = int(math.Floor(math.Log10(math.Abs(v))))
	}
	if !isWidth(halfwidth) || halfwidth == 0 {
		return max(0, min(2-magnitude, most))
	}
	exponent := int(math.Floor(math.Log10(halfwidth)))
	keep := 1
	switch lead := math.Round(halfwidth / math.Pow(10, float64(exponent-2))); {
	case lead < 355:
		keep = 2
	case lead >= 950: // 0.0096 becomes 0.010
		exponent, keep = exponent+1, 2
	}
	return max(0, min(keep-1-exponent, most-1-max(magnitude, 0)))
}

// prefixed is a unit with a prefix: a value divided by factor is in it.
type prefixed struct {
	factor float64
	unit   string
	next   *prefixed // the next larger one
}

// scale picks the prefix that leaves v between 1 and 1000.
func scale(v float64, u string) prefixed {
	type prefix struct {
		factor float64
		name   string
	}
	var prefixes []prefix
	switch {
	case u == "s" || strings.HasPrefix(u, "s/"):
		prefixes = []prefix{{1e-12, "p"}, {1e-9, "n"}, {1e-6, "µ"}, {1e-3, "m"}, {1, ""}}
		if u == "s" {
			prefixes = prefixes[1:]
		}
	case u == "":
		prefixes = []prefix{{1, ""}}
	default:
		prefixes = []prefix{{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}}
	}
	name := func(p prefix) string {
		if rest, ok := strings.CutPrefix(u, "1/"); ok {
			return p.name + "/" + rest
		}
		return p.name + u
	}
	if v == 0 {
		return prefixed{factor: 1, unit: name(prefix{1, ""})}
	}
	i := 0
	for i+1 < len(prefixes) && math.Abs(v) >= prefixes[i+1].factor*(1-1e-12) {
		i++
	}
	p := prefixed{factor: prefixes[i].factor, unit: name(prefixes[i])}
	if i+1 < len(prefixes) {
		p.next = &prefixed{factor: prefixes[i+1].factor, unit: name(prefixes[i+1])}
	}
	return p
}
