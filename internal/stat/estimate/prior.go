package estimate

import (
	"math"
	"slices"
)

// Prior is what the variances of like contrasts say of the variance of each of them: how much
// it is, and for how many degrees of freedom of a contrast's own that counts. With the zero
// Prior they say nothing.
//
// The variance of a contrast in a few blocks is nearly unknown: Student's quantile is 12.7 with
// two blocks, 4.3 with three and 2.0 with many. A study has dozens of contrasts of the same kind,
// whose variances resemble each other. Smyth's moderated t adds what they have in common to what
// each contrast shows (Linear models and empirical Bayes methods for assessing
// differential expression in microarray experiments, SAGM 3(1), 2004, section 3).
type Prior struct {
	DOF, Variance float64
}

const (
	// fewestContrasts tell how much variances differ; fewer are no evidence that they are alike.
	fewestContrasts = 20
	// mostPriorDOF bounds what others may say of a contrast.
	mostPriorDOF = 8
	// fewestOwn is how many blocks a contrast has at least for a prior to count. With two, intervals
	// that are to miss the truth in 1 of 300 cases missed it in up to 4, as simulated in
	// TestModeratedCoverage with two blocks.
	fewestOwn = 3
)

// PriorOf is the prior that makes the variances of contrasts most likely. Each variance is an
// own one, from an inverse gamma distribution, seen in a few blocks: its quotient by
// Prior.Variance has an F distribution (Wright and Simon, A random variance model for detection
// of differential gene expression in small microarray experiments, Bioinformatics 19(18), 2003).
// Where variances differ much, few degrees of freedom are most likely, and the prior says little.
func PriorOf(contrasts []Moments) Prior {
	var some []Moments
	var variances []float64
	for _, m := range contrasts {
		if m.N >= 2 && m.SD > 0 {
			some, variances = append(some, m), append(variances, m.SD*m.SD)
		}
	}
	typical := Prior{Variance: MedianOf(variances)}
	some = slices.DeleteFunc(some, typical.other)
	if len(some) < fewestContrasts {
		return Prior{}
	}
	best, most := Prior{}, math.Inf(-1)
	for dof := 0.5; dof <= mostPriorDOF; dof += 0.5 {
		p := Prior{dof, likeliestVariance(some, dof)}
		if l := p.logLikelihood(some); l > most {
			best, most = p, l
		}
	}
	return best
}

// other reports that a contrast is not of the kind, because it varies less than a thirtieth as much.
// There is a reason for that, such as a full link.
func (p Prior) other(m Moments) bool { return m.SD*m.SD < p.Variance/1000 }

// logLikelihood of the variances of contrasts.
func (p Prior) logLikelihood(contrasts []Moments) (sum float64) {
	gamma := func(x float64) float64 {
		l, _ := math.Lgamma(x)
		return l
	}
	for _, m := range contrasts {
		d := float64(m.N - 1)
		x := d * m.SD * m.SD / (p.DOF * p.Variance)
		sum += gamma((d+p.DOF)/2) - gamma(d/2) - gamma(p.DOF/2) + d/2*math.Log(x) - (d+p.DOF)/2*math.Log1p(x)
	}
	return sum
}

// likeliestVariance is that of a prior with some degrees of freedom. The likelihood's slope falls
// with the variance's logarithm, and is zero at the greatest.
func likeliestVariance(contrasts []Moments, dof float64) float64 {
	low, high := math.Inf(1), 0.0
	for _, m := range contrasts {
		low, high = min(low, m.SD*m.SD), max(high, m.SD*m.SD)
	}
	for range 60 {
		middle := math.Sqrt(low * high)
		slope := 0.0
		for _, m := range contrasts {
			d := float64(m.N - 1)
			x := d * m.SD * m.SD / (dof * middle)
			slope += (d+dof)*x/(1+x) - d
		}
		if slope > 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// IntervalWith is the interval of the mean at a confidence, with what a prior adds: a variance of
// both, and the degrees of freedom of both. With two values, or nearly no spread, it is Student's.
// There is none below two values.
func (m Moments) IntervalWith(p Prior, confidence float64) (low, high float64, ok bool) {
	if m.N < 2 {
		return 0, 0, false
	}
	if m.N < fewestOwn || p.other(m) {
		p = Prior{}
	}
	own := float64(m.N - 1)
	m.SD = math.Sqrt((own*m.SD*m.SD + p.DOF*p.Variance) / (own + p.DOF))
	h := m.halfwidth(TQuantile(own+p.DOF, 1-(1-confidence)/2))
	return m.Mean - h, m.Mean + h, true
}
