package result

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
)

// Factor describes one field of Cell: everything that lists, compares, exports or
// names factors derives from it. Factors has one for each field.
type Factor struct {
	// Name is the factor's name in records, campaigns and selectors of claims.
	Name string
	// Of points at the factor in a cell: a *string, *int, *float64 or *bool.
	Of func(*Cell) any
	// Order is where the factor comes in lists that are not in the table's own order.
	Order Order
	// Column is its name in exports, with its unit; "" means Name.
	Column string
	// Label is its name in headings, Plural that of several levels; "" means Name,
	// and Label with an s.
	Label, Plural string
	// Absent is what an absent text means, in words: "ipv4"; "" means none.
	Absent string
	// Default is the value that a campaign writes and a record leaves out; nil means
	// the zero value only.
	Default any
	// Reference is the level that others are compared with; nil means the zero value.
	Reference any
	// OnHost is the value that every baseline has; nil means that a cell shares the
	// factor with its baseline.
	OnHost any
	// Filter is the choice of the HTML report that the factor belongs to, FilterUnit
	// the unit of its numbers there, and Unsaid what a cell without it is in words; ""
	// means that the cell is not filtered by it.
	Filter, FilterUnit, Unsaid string
	// FilterWords are its words in the filter where value and unit do not say it; nil
	// means value and unit.
	FilterWords func(Cell) string
	// Words are its part of Cell.Traffic; nil means the text, or the name of a switch
	// that is on.
	Words func(Cell) string
	// Settle leaves the factor out of a planned cell where it does not apply, or says
	// what another factor says; nil means never.
	Settle func(*Cell)
	// Key is what a campaign writes for the factor of a workload; nil means that it is
	// not written there. A func keeps the sorting of cells free of its size.
	Key func() Key
}

// Key is the key of a campaign's workload that lists the values of a factor. The
// parser, the JSON Schema and the manual derive from it.
type Key struct {
	// Kind is what one value is called in an error: "burst".
	Kind string
	// Doc says in one or two sentences what the factor is, Default what applies where
	// the key is left out, and Example is a list of values as YAML.
	Doc, Default, Example string
	// Names are the allowed texts; nil allows any that Pattern matches, or that the
	// workload has.
	Names []string
	// Pattern is what a text must match; nil allows any. PatternDoc says it in words.
	Pattern    *regexp.Regexp
	PatternDoc string
	// Bounds are those of a number.
	Bounds Bounds
}

// Bounds are the least and the greatest number that a key takes. AboveMin and BelowMax
// exclude the bound itself.
type Bounds struct {
	Min, Max           float64
	AboveMin, BelowMax bool
}

// Hold reports whether a number is within the bounds.
func (b Bounds) Hold(v float64) bool {
	return v >= b.Min && v <= b.Max && !(b.AboveMin && v == b.Min) && !(b.BelowMax && v == b.Max)
}

// String is the bounds in words: "from 1 to 256", "above 0, at most 3600".
func (b Bounds) String() string {
	lo, hi := strconv.FormatFloat(b.Min, 'f', -1, 64), strconv.FormatFloat(b.Max, 'f', -1, 64)
	switch {
	case b.AboveMin && b.BelowMax:
		return fmt.Sprintf("between %s and %s, both excluded", lo, hi)
	case b.AboveMin:
		return fmt.Sprintf("above %s, at most %s", lo, hi)
	default:
		return fmt.Sprintf("from %s to %s", lo, hi)
	}
}

// Order has the position of a factor in each list, from 1; 0 means that it is not in
// that list.
type Order struct {
	// Column is the position among the columns of exports. Every factor is exported.
	Column int
	// Words is the position in Cell.Traffic.
	Words int
	// Filter is the position of its choice in the HTML report's filter. Factors of one
	// choice have the same.
	Filter int
	// Levels is the position among the factors whose levels are compared; 0 means that
	// the factor is only recorded.
	Levels int
	// Key is the position among the keys of a campaign's workload; 0 means that it is none.
	Key int
}

// Factors are all factors in the order in which cells are sorted.
func Factors() []Factor {
	return slices.Collect(factorTable)
}

// FactorsBy are the factors that have a position in a list, in its order.
func FactorsBy(position func(Order) int) []Factor {
	out := slices.DeleteFunc(Factors(), func(f Factor) bool { return position(f.Order) == 0 })
	slices.SortStableFunc(out, func(a, b Factor) int {
		return cmp.Or(cmp.Compare(position(a.Order), position(b.Order)), cmp.Compare(a.Order.Column, b.Order.Column))
	})
	return out
}

// FindFactor is the factor with a name in records; ok is false where there is none.
func FindFactor(name string) (f Factor, ok bool) {
	for f := range factorTable {
		if f.Name == name {
			return f, true
		}
	}
	return Factor{}, false
}

// Text is the factor's value as text; "" where it is the zero value.
func (f Factor) Text(c Cell) string {
	switch p := f.Of(&c).(type) {
	case *string:
		return *p
	case *int:
		if *p != 0 {
			return strconv.Itoa(*p)
		}
	case *float64:
		if *p != 0 {
			return strconv.FormatFloat(*p, 'g', -1, 64)
		}
	case *bool:
		if *p {
			return "true"
		}
	}
	return ""
}

// IsText reports whether the factor's values are texts.
func (f Factor) IsText() bool { _, ok := f.Of(&Cell{}).(*string); return ok }

// IsSwitch reports whether the factor is on or off.
func (f Factor) IsSwitch() bool { _, ok := f.Of(&Cell{}).(*bool); return ok }

// Type is the type of the factor's values: string, int, float64 or bool.
func (f Factor) Type() reflect.Type { return reflect.TypeOf(f.Of(&Cell{})).Elem() }

// Copy gives a cell the factor of another.
func (f Factor) Copy(to *Cell, from Cell) {
	switch p := f.Of(to).(type) {
	case *string:
		*p = *f.Of(&from).(*string)
	case *int:
		*p = *f.Of(&from).(*int)
	case *float64:
		*p = *f.Of(&from).(*float64)
	case *bool:
		*p = *f.Of(&from).(*bool)
	}
}

// Set gives a cell a value of the factor's own type, and leaves out the one that a
// record leaves out. A value of another type changes nothing and gives false.
func (f Factor) Set(c *Cell, value any) bool {
	if value == f.Default {
		f.Copy(c, Cell{})
		return true
	}
	switch p := f.Of(c).(type) {
	case *string:
		return put(p, value)
	case *int:
		return put(p, value)
	case *float64:
		return put(p, value)
	case *bool:
		return put(p, value)
	}
	return false
}

func put[V any](to *V, value any) bool {
	v, ok := value.(V)
	if ok {
		*to = v
	}
	return ok
}

// Compare orders two cells by the factor.
func (f Factor) Compare(a, b Cell) int { return f.compare(&a, &b) }

func (f Factor) compare(a, b *Cell) int {
	switch p := f.Of(a).(type) {
	case *string:
		return cmp.Compare(*p, *f.Of(b).(*string))
	case *int:
		return cmp.Compare(*p, *f.Of(b).(*int))
	case *float64:
		return cmp.Compare(*p, *f.Of(b).(*float64))
	case *bool:
		return cmp.Compare(b2i(*p), b2i(*f.Of(b).(*bool)))
	}
	return 0
}

// IsReference reports whether a cell has the level that others are compared with.
func (f Factor) IsReference(c Cell) bool {
	if f.Reference == nil {
		return f.Text(c) == ""
	}
	switch p := f.Of(&c).(type) {
	case *string:
		return *p == f.Reference
	case *int:
		return *p == f.Reference
	case *float64:
		return *p == f.Reference
	case *bool:
		return *p == f.Reference
	}
	return false
}

// words are the factor's part of Cell.Traffic.
func (f Factor) words(c Cell) string {
	switch {
	case f.Words != nil:
		return f.Words(c)
	case f.IsSwitch() && f.Text(c) != "":
		return f.Name
	}
	return f.Text(c)
}

// Describe says all factors of c in one line.
func (c Cell) Describe() string {
	s := fmt.Sprintf("%s %s %s, %s, %s, MTU %d, %s", c.Network, c.Path, c.Placement, c.Link, c.Profile, c.MTU, c.Traffic())
	if pair := c.Pair(); pair != "" {
		s += ", " + pair
	}
	return s
}
