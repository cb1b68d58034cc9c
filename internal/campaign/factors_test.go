package campaign_test

import (
	"reflect"
	"testing"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
)

// What a workload can vary is in the table of factors, with the same type.
func TestWorkloadKeysAreFactors(t *testing.T) {
	var w campaign.Workload
	v := reflect.ValueOf(&w).Elem()
	lists := 0
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice {
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			lists++
		}
	}
	for name, values := range w.Factors {
		lists--
		f, ok := result.FindFactor(name)
		if !ok {
			t.Errorf("%s is no factor of a cell: add it to internal/result/factor_table.go", name)
			continue
		}
		if len(values) != 1 || !f.Set(&result.Cell{}, values[0]) {
			t.Errorf("%s: a cell does not take the values %v of a campaign", name, values)
		}
	}
	if lists != 0 {
		t.Errorf("%d lists of a workload are not given", lists)
	}
}
