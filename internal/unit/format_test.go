package unit

import (
	"math"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

func TestEstimate(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		v, half float64
		unit    string
		want    string
	}{
		{9.1234e9, 0.05e9, "bit/s", "9.12 Gbit/s ± 0.05"},
		{9.1234e9, 0.123e9, "bit/s", "9.12 Gbit/s ± 0.12"},
		{9.1234e9, 0.0096e9, "bit/s", "9.123 Gbit/s ± 0.010"},
		{9.1234e9, nan, "bit/s", "9.12 Gbit/s"},
		{9.1234e9, 0, "bit/s", "9.12 Gbit/s ± 0"},
		{1448, 0, "B", "1448 B ± 0"},
		{0, 0, "", "0 ± 0"},
		{0, 102, "", "0 ± 100"},
		{89182, 36825, "", "90000 ± 40000"},
		{0.813, 0.207, "s", "810 ms ± 210"},
		{0.504, 11.939, "s", "1 s ± 12"},
		{-520e-6, 0.037233, "s", "0 ms ± 40"},
		{1234e-9, 31e-6, "s", "1 µs ± 31"},
		{956.1e6, 0.3e6, "bit/s", "956.10 Mbit/s ± 0.30"},
		{999.996e6, nan, "bit/s", "1.00 Gbit/s"},
		{999.6e6, 2e6, "bit/s", "999.6 Mbit/s ± 2.0"},
		{34.2e-6, nan, "s", "34.2 µs"},
		{34.2e-6, 0.4e-6, "s", "34.2 µs ± 0.4"},
		{0.5e-9, nan, "s", "0.500 ns"},
		{1.5, nan, "s", "1.50 s"},
		{31416, 200, "1/s", "31.42 k/s ± 0.20"},
		{12, nan, "1/s", "12.0 /s"},
		{0, nan, "bit/s", "0 bit/s"},
		{3, nan, "", "3"},
		{2.5, nan, "", "2.50"},
		{123456, nan, "", "123456"},
		{1500, nan, "B", "1500 B"},
		{24e9, nan, "B", "24.0 GB"},
		{2.5e-10, nan, "s/B", "250 ps/B"},
		{5e9, 20e9, "bit/s", "5 Gbit/s ± 20"},
		{60e-3, 15.354, "s", "0 s ± 15"},
		{-133e-9, 22048e-9, "s", "0 µs ± 22"},
		{-0.4e-9, 23e-9, "s", "0 ns ± 23"},
		{0, 0, "s", "0 s ± 0"},
		{0, 2e-6, "s", "0.0 µs ± 2.0"},
		{5e9, 1, "bit/s", "5.00000 Gbit/s ± 0.00000"},
		{-9.12e9, nan, "bit/s", "-9.12 Gbit/s"},
		{nan, 1, "s", "not a number"},
		{math.Inf(1), 1, "s", "not a number"},
	} {
		if got := Estimate(c.v, c.half, c.unit); got != c.want {
			t.Errorf("Estimate(%g, %g, %q) = %q, want %q", c.v, c.half, c.unit, got, c.want)
		}
	}
}

func TestPercentAndInterval(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Percent(0.934, 0.005), "93.4 % ± 0.5"},
		{Percent(0.934, math.NaN()), "93.4 %"},
		{Percent(-0.0004, 0.02), "0.0 % ± 2.0"},
		{Percent(0.58, 1.21), "58 % ± 121"},
		{Rough(17880), "18,000"},
		{Rough(7), "7"},
		{Rough(124), "120"},
		{Rough(1234567), "1,200,000"},
		{Share(0.661), "66 %"},
		{Share(0.0014), "0.1 %"},
		{Share(-0.553), "-55 %"},
		{Round(10e9, "bit/s"), "10 Gbit/s"},
		{Round(2.5e9, "bit/s"), "2.5 Gbit/s"},
		{Round(100e6, "bit/s"), "100 Mbit/s"},
		{Interval(-2e9, 1e6, "bit/s"), "-2.0 to 0.0 Gbit/s"},
		{Percent(1.32, 0.12), "132 % ± 12"},
		{Percent(math.NaN(), 0), "not a number"},
		{Interval(9.07e9, 9.17e9, "bit/s"), "9.07 to 9.17 Gbit/s"},
		{Interval(33e-6, 35e-6, "s"), "33.0 to 35.0 µs"},
		{Interval(math.NaN(), 1, "s"), "not a number"},
		{Metric{Name: "loss_ratio"}.Format(0.0063, math.NaN()), "0.630 %"},
		{Metric{Name: "loss_ratio"}.FormatInterval(0.01, 0.02), "1.0 to 2.0 %"},
		{Metric{Name: "x_seconds", Unit: "s"}.FormatInterval(1, 2), "1.0 to 2.0 s"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func FuzzEstimate(f *testing.F) {
	f.Add(9.1e9, 0.05e9)
	f.Add(0.0, 0.0)
	f.Add(1e-320, 1e300)
	f.Fuzz(func(t *testing.T, v, half float64) {
		defer fuzzed.Within(t)()
		for _, u := range []string{"bit/s", "s", "1/s", "", "B", "s/B"} {
			if s := Estimate(v, half, u); s == "" || strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
				t.Errorf("Estimate(%g, %g, %q) = %q", v, half, u, s)
			}
		}
	})
}

func TestChange(t *testing.T) {
	for _, c := range []struct {
		ratio, half float64
		want        string
	}{
		{0.76, 0.02, "-24 % ±2"}, {1.31, 0.02, "+31 % ±2"}, {2.42, 0.03, "+142 % ±3"}, {0.999, 0.012, "0 % ±1"},
		{0.961, 0.003, "-3.9 % ±0.3"}, {0.99951, 0.0002, "-0.05 % ±0.02"}, {0.926, 0.009, "-7 % ±1"}, {0.5, math.NaN(), "-50 %"}, {1, math.NaN(), "0 %"}, {math.NaN(), 0, "not a number"},
	} {
		if got := Change(c.ratio, c.half); got != c.want {
			t.Errorf("%v ± %v: %q, want %q", c.ratio, c.half, got, c.want)
		}
	}
}
