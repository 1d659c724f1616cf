package config

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// Value is what the field of a setting holds, nil for a table.
func (s Setting) Value() any { return s.get() }

// Set changes the field. The value has the type of [Setting.Value].
func (s Setting) Set(v any) { s.set(v) }

// empty reports whether a value is what its type has without one.
func (s Setting) empty() bool {
	v := reflect.ValueOf(s.get())
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

// Amount orders the values of a setting: a larger one grants more. A number that is
// 0 has no end, a choice counts by its place.
func (s Setting) Amount() float64 {
	switch v := s.get().(type) {
	case bool:
		if v {
			return 1
		}
		return 0
	case string:
		return float64(1 + slices.Index(s.options, v))
	}
	v := reflect.ValueOf(s.get())
	switch isNumber := v.CanInt() || v.CanUint() || v.CanFloat(); {
	case !isNumber:
		return 0
	case v.IsZero():
		return math.Inf(1)
	case v.CanUint():
		return float64(v.Uint())
	case v.CanInt():
		return float64(v.Int())
	}
	return v.Float()
}

// Exceeds reports whether a value grants more than most. A number that is 0 leaves
// the limit to most. Money is compared in millionths, as it is counted.
func (s Setting) Exceeds(most Setting) bool {
	a, m := s.Amount(), most.Amount()
	if _, isMoney := s.get().(float64); isMoney {
		a, m = math.Ceil(a*1e6), math.Ceil(m*1e6)
	}
	return !s.empty() && a > m
}

// Narrow leaves the value no more than most.
func (s Setting) Narrow(most Setting) {
	if s.Amount() > most.Amount() {
		s.set(most.get())
	}
}

// Text writes a value in the units of the file.
func (s Setting) Text() string {
	v := reflect.ValueOf(s.get())
	switch {
	case s.bounds.off && s.empty():
		return unlimited
	case s.quantity != nil && v.CanUint():
		return s.quantity.print(int64(v.Uint()))
	case s.quantity != nil:
		return s.quantity.print(v.Int())
	case v.CanFloat():
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	}
	return fmt.Sprint(s.get())
}

// stated reports whether a composition has to give the value: an absent key would
// mean another one.
func (s Setting) stated() bool {
	hasDefault := s.Default != "" && s.Default != "false" && !s.bounds.off
	if raw, ok := s.get().(json.RawMessage); ok && string(raw) == "{}" {
		return s.always
	}
	return s.missing || hasDefault || !s.empty()
}

// json is the value as a composition writes it.
func (s Setting) json() any {
	switch v := s.get().(type) {
	case time.Duration:
		return v.String()
	case Source:
		return v.text()
	}
	return s.get()
}
