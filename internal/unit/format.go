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

// Round says v like Value, without zeros at its end: the rate of a link is
// "10 Gbit/s".
func Round(v float64, u string) string {
	number, name, _ := strings.Cut(Value(v, u), " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return strings.TrimSpace(number + " " + name)
}

// Estimate says v ± halfwidth, both in the base unit u, with as many digits as
// the half-width bears: "9.12 Gbit/s ± 0.05". A half-width that is NaN is left
// out; one of 0 says that all were the same.
func Estimate(v, halfwidth float64, u string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "not a number"
	}
	if u == "B" && !(halfwidth > 0) && v == math.Trunc(v) && math.Abs(v) < 1e5 {
		return strconv.FormatFloat(v, 'f', 0, 64) + " B" + plusMinus(halfwidth, 0) // an MTU of 1500 is not 1.5 kB
	}
	larger := v // with a prefix that fits the larger of both: 504 ms ± 12 s
	if isWidth(halfwidth) {
		larger = max(math.Abs(v), halfwidth)
	}
	p := scale(larger, u)
	digits := decimals(v/p.factor, halfwidth/p.factor)
	if p.next != nil && math.Abs(round(larger/p.factor, digits)) >= 1000 {
		p = *p.next // 999.996 M is 1.00 G
		digits = decimals(round(v/p.factor, 3), halfwidth/p.factor)
	}
	v, halfwidth = v/p.factor, halfwidth/p.factor
	if !(halfwidth > 0) && v == math.Trunc(v) && (u == "" || v == 0) {
		digits = 0 // a count
	}
	s := fixed(v, digits)
	if p.unit != "" {
		s += " " + p.unit
	}
	return s + plusMinus(halfwidth, digits)
}

// plusMinus says a half-width behind its value.
func plusMinus(halfwidth float64, digits int) string {
	switch {
	case !isWidth(halfwidth):
		return ""
	case halfwidth == 0:
		return " ± 0"
	}
	return " ± " + fixed(halfwidth, digits)
}

// fixed says v with some digits behind the point, or rounded before it where
// digits are negative.
func fixed(v float64, digits int) string {
	s := strconv.FormatFloat(round(v, digits), 'f', max(0, digits), 64)
	if strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-") // no "-0"
	}
	return s
}

// Interval says low to high, both in the base unit u: "9.07 to 9.17 Gbit/s".
func Interval(low, high float64, u string) string {
	if math.IsNaN(low+high) || math.IsInf(low, 0) || math.IsInf(high, 0) {
		return "not a number"
	}
	if u == "B" && low == high {
		return Value(low, u) + " to " + Value(high, u)
	}
	larger := max(math.Abs(low), math.Abs(high))
	p := scale(larger, u)
	digits := decimals(larger/p.factor, (high-low)/2/p.factor)
	s := fixed(low/p.factor, digits) + " to " + fixed(high/p.factor, digits)
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
	digits := max(0, decimals(100*ratio, 100*halfwidth)) // 98 ± 40 is not 100
	return fixed(100*ratio, digits) + " %" + plusMinus(100*halfwidth, digits)
}

// Change says a ratio as the change that it is, in percent with a sign, with the
// half-width of its interval: 0.76 ± 0.02 is "-24 % ±2". The half-width decides
// the digits: as many, up to two, as show that it is not 0. A half-width that is NaN is
// left out.
func Change(ratio, halfwidth float64) string {
	if math.IsNaN(ratio) || math.IsInf(ratio, 0) {
		return "not a number"
	}
	digits := 0
	for isWidth(halfwidth) && digits < 2 && round(100*halfwidth, digits) == 0 {
		digits++ // an interval is never shown as ±0
	}
	v := round(100*(ratio-1), digits)
	s := fixed(v, digits) + " %"
	switch {
	case v == 0:
		s = fixed(0, digits) + " %"
	case v > 0:
		s = "+" + s
	}
	if isWidth(halfwidth) {
		s += " ±" + fixed(100*halfwidth, digits)
	}
	return s
}

// Share says a part of a whole without an interval of its own in whole percent:
// "66 %", or "0.3 %" where it is less than one.
func Share(ratio float64) string {
	digits := 0
	if math.Abs(ratio) < 0.01 {
		digits = 1
	}
	return fixed(100*ratio, digits) + " %"
}

// Rough says an estimated number in two figures: "18,000".
func Rough(n int) string {
	s := fixed(float64(n), 1-int(math.Floor(math.Log10(math.Max(10, math.Abs(float64(n)))))))
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
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
		digits := max(0, decimals(100*max(math.Abs(low), math.Abs(high)), 100*(high-low)/2))
		return fixed(100*low, digits) + " to " + fixed(100*high, digits) + " %"
	}
	return Interval(low, high, m.Unit)
}

// IsRatio reports whether the metric is a share that people read in percent.
func (m Metric) IsRatio() bool { return strings.HasSuffix(m.Name, "_ratio") }

func isWidth(h float64) bool { return !math.IsNaN(h) && !math.IsInf(h, 0) && h >= 0 }

func round(v float64, digits int) float64 {
	p := math.Pow(10, float64(digits))
	return math.Round(v*p) / p
}

// decimals is how many digits behind the point a value is shown with, negative
// where digits before it are rounded too. Without a half-width: three digits in
// all. With one: the half-width decides, by the Particle Data Group's rule
// (Review of Particle Physics, "Introduction", rounding): of its three leading
// digits, 100–354 keep two, 355–949 keep one, 950–999 round up and keep two.
// Never more than six digits in all.
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
	return min(keep-1-exponent, most, most-1-max(magnitude, 0))
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
