package page

import (
	"math"
)

// Step is one step of the colour scale of efficiency: from Least on.
type Step struct {
	Step  int
	Least float64
	Text  string
}

// Steps is the colour scale, the lowest first. It is fixed, so that a colour
// means the same in every report.
func Steps() []Step {
	return []Step{
		{1, math.Inf(-1), "below 25 %"},
		{2, 0.25, "25 %"},
		{3, 0.50, "50 %"},
		{4, 0.70, "70 %"},
		{5, 0.80, "80 %"},
		{6, 0.90, "90 %"},
		{7, 0.95, "95 %"},
		{8, 0.98, "98 %"},
		{9, 1.02, "102 % and more"},
	}
}

// ShadeOf is the step of the colour scale that an efficiency has.
func ShadeOf(efficiency float64) int {
	shade := 0
	for _, s := range Steps() {
		if efficiency >= s.Least {
			shade = s.Step
		}
	}
	return shade
}
