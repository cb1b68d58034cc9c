// Package plain makes text of strangers safe to show: a pod, a host, a plugin or a
// result file may hold sequences that move a terminal's cursor, rename its window
// or turn a line around.
package plain

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is s with every control character but line feed and tab, every character
// that changes the direction of text, and every byte that is no UTF-8 written as
// an escape: "\x1b[31m" for a sequence that turns text red.
func Text(s string) string {
	if !strings.ContainsFunc(s, shown) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, size := 0, 0; i < len(s); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !shown(r):
			b.WriteRune(r)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// shown recognises a character that is shown as an escape.
func shown(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// Clean replaces every string that v points to, however deep, by its Text. Fields
// that are not exported stay as they are.
func Clean(v any) { clean(reflect.ValueOf(v)) }

func clean(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			clean(v.Elem())
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString(Text(v.String()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				clean(v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return // bytes are no text
		}
		for i := range v.Len() {
			clean(v.Index(i))
		}
	case reflect.Map:
		cleanMap(v)
	}
}

// cleanMap replaces entries, as neither keys nor values of a map can be set.
func cleanMap(m reflect.Value) {
	keys := m.MapKeys()
	for _, key := range keys {
		value := reflect.New(m.Type().Elem()).Elem()
		value.Set(m.MapIndex(key))
		clean(value)
		name := reflect.New(key.Type()).Elem()
		name.Set(key)
		clean(name)
		m.SetMapIndex(key, reflect.Value{})
		m.SetMapIndex(name, value)
	}
}
