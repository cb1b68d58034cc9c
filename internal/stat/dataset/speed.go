package dataset

import (
	"slices"

	"github.com/cnibench/cnibench/internal/result"
)

// Speeds is how fast each machine's processor ran in each block with a reading relative
// to the median one: 1.1 is a tenth faster. A machine is missing whose speed was not measured.
type Speeds map[string][]float64

// newSpeeds takes one reading of the machine's loop for each block, since all samples of a
// block have the same.
func newSpeeds(cells []*CellData) Speeds {
	loops := map[string]map[int]float64{}
	for _, d := range cells {
		for _, s := range d.OK {
			for _, end := range Ends() {
				v, ok := s.Probe(end+result.IdleSuffix, "cpu_loop_seconds")
				if !ok || v <= 0 {
					continue
				}
				id := MachineOf(s, end)
				if loops[id] == nil {
					loops[id] = map[int]float64{}
				}
				loops[id][s.Block()] = v
			}
		}
	}
	speeds := Speeds{}
	for id, blocks := range loops {
		var all []float64
		for _, v := range blocks {
			all = append(all, 1/v)
		}
		slices.Sort(all)
		median := all[len(all)/2]
		for i := range all {
			all[i] /= median
		}
		speeds[id] = all
	}
	return speeds
}

// Range is the slowest and the fastest block of a machine, without the tenth of the blocks
// that is slowest and the tenth that is fastest. It takes five blocks.
func (s Speeds) Range(machine string) (slowest, fastest float64, ok bool) {
	all := s[machine]
	if len(all) < 5 {
		return 0, 0, false
	}
	cut := len(all) / 10
	return all[cut], all[len(all)-1-cut], true
}
