package result

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Every field of Cell has one entry, which has its name in records and points at it.
func TestEveryFieldHasAFactor(t *testing.T) {
	typ := reflect.TypeFor[Cell]()
	if n := len(Factors()); n != typ.NumField() {
		t.Errorf("%d factors of %d fields", n, typ.NumField())
	}
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		f, ok := FindFactor(name)
		if !ok {
			t.Errorf("%s has no entry in factorTable", field.Name)
			continue
		}
		var c Cell
		if f.Of(&c) != reflect.ValueOf(&c).Elem().Field(i).Addr().Interface() {
			t.Errorf("the entry of %s points at another field", name)
		}
		changed := c
		fill(t, reflect.ValueOf(&changed).Elem().Field(i))
		if f.Text(c) != "" || f.Text(changed) == "" || f.Compare(c, changed) != -1 || c.Compare(changed) != -1 || changed.Compare(c) != 1 {
			t.Errorf("%s: Text %q and %q, Compare %d", name, f.Text(c), f.Text(changed), f.Compare(c, changed))
		}
		if f.Copy(&c, changed); c != changed {
			t.Errorf("Copy of %s gives %+v", name, c)
		}
		if f.Type() != field.Type {
			t.Errorf("%s has values of type %s in a field of type %s", name, f.Type(), field.Type)
		}
		for _, v := range []any{f.Default, f.Reference, f.OnHost} {
			if v != nil && reflect.TypeOf(v) != field.Type {
				t.Errorf("%s: a value of type %T for a field of type %s", name, v, field.Type)
			}
		}
		if f.Default != nil {
			if !f.Set(&c, f.Default) || c != (Cell{}) {
				t.Errorf("the default of %s is not left out: %+v", name, c)
			}
		}
		if f.Set(&c, struct{}{}) {
			t.Errorf("%s takes a value of a type that it has not", name)
		}
	}
}

// fill gives a field a value that is not its zero value.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.Bool:
		v.SetBool(true)
	default:
		t.Fatalf("a factor of kind %s: factor.go knows texts, whole numbers, numbers and switches", v.Kind())
	}
}

// Places in lists are counted from 1 without a gap, so that the order of a list
// does not depend on the order of the table.
func TestPlacesOfFactors(t *testing.T) {
	for name, of := range map[string]func(Order) int{
		"Column": func(o Order) int { return o.Column }, "Words": func(o Order) int { return o.Words },
		"Filter": func(o Order) int { return o.Filter }, "Levels": func(o Order) int { return o.Levels },
		"Key": func(o Order) int { return o.Key },
	} {
		var got []int
		for _, f := range FactorsBy(of) {
			got = append(got, of(f.Order))
		}
		if name == "Filter" { // several factors may be one choice
			got = slices.Compact(got)
		}
		for i, n := range got {
			if n != i+1 {
				t.Errorf("%s: position %d where %d is expected: %v", name, n, i+1, got)
				break
			}
		}
	}
	if n := len(FactorsBy(func(o Order) int { return o.Column })); n != len(Factors()) {
		t.Errorf("%d of %d factors are exported", n, len(Factors()))
	}
	choices := map[int]string{}
	for _, f := range Factors() {
		if (f.Order.Key > 0) != (f.Key != nil) {
			t.Errorf("%s has a key without a position, or a position without a key", f.Name)
		}
		if (f.Order.Filter > 0) != (f.Filter != "") {
			t.Errorf("%s has a choice in the filter without a position, or a position without a choice", f.Name)
		}
		if other, ok := choices[f.Order.Filter]; ok && other != f.Filter {
			t.Errorf("choices %s and %s of the filter have one position", other, f.Filter)
		}
		choices[f.Order.Filter] = f.Filter
	}
}

// What the table says of the baseline is what Baseline does.
func TestBaselineFollowsTheTable(t *testing.T) {
	var c Cell
	v := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		fill(t, v.Field(i))
	}
	base := c.Baseline()
	for _, f := range Factors() {
		want := c
		if f.OnHost != nil {
			if !f.Set(&want, f.OnHost) {
				t.Errorf("%s does not take the baseline's value", f.Name)
			}
		}
		if f.Compare(base, want) != 0 {
			t.Errorf("%s of the baseline is %q, and the table says %q", f.Name, f.Text(base), f.Text(want))
		}
	}
}
