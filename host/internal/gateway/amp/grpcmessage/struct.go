package grpcmessage

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of struct.proto
// (https://github.com/protocolbuffers/protobuf/blob/main/src/google/protobuf/struct.proto): of a
// Struct and a ListValue the one that they have, and of an entry of a Struct.
const (
	itemField  = protowire.Number(1)
	keyField   = protowire.Number(1)
	valueField = protowire.Number(2)
)

// Fields of a Value, of which one is set.
const (
	nullValue   = protowire.Number(1)
	numberValue = protowire.Number(2)
	stringValue = protowire.Number(3)
	boolValue   = protowire.Number(4)
	structValue = protowire.Number(5)
	listValue   = protowire.Number(6)
)

// valueKinds are the kinds of the fields of a Value.
var valueKinds = map[protowire.Number]protowire.Type{
	nullValue: protowire.VarintType, numberValue: protowire.Fixed64Type, stringValue: protowire.BytesType,
	boolValue: protowire.VarintType, structValue: protowire.BytesType, listValue: protowire.BytesType,
}

// structure writes a Struct of at most so many levels.
func (w *writer) structure(raw []byte, depth int) error {
	return w.items(raw, "{", "}", depth, func(entry []byte) error {
		var key, value []byte
		err := fields(entry, func(f field) error {
			switch {
			case f.kind != protowire.BytesType:
			case f.number == keyField:
				key = f.bytes
			case f.number == valueField && value != nil:
				return fmt.Errorf("%w: a member of a Struct has two values", errMalformed)
			case f.number == valueField:
				value = f.bytes
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := w.quoted(key); err != nil {
			return err
		}
		w.text(":")
		return w.value(value, depth-1)
	})
}

// items writes the items of a Struct or a ListValue.
func (w *writer) items(raw []byte, begin, end string, depth int, each func([]byte) error) error {
	if depth <= 0 {
		return ErrDeep
	}
	first := true
	w.text(begin)
	err := fields(raw, func(f field) error {
		switch {
		case f.number != itemField:
			return nil // unknown
		case f.kind != protowire.BytesType:
			return fmt.Errorf("%w: an item of a Struct has another type", errMalformed)
		case len(w.out) > w.max:
			return ErrTooLarge
		}
		w.separate(&first)
		return each(f.bytes)
	})
	w.text(end)
	return err
}

// value writes a Value. One of which nothing or more than one kind is set has no reading.
func (w *writer) value(raw []byte, depth int) error {
	var set field
	err := fields(raw, func(f field) error {
		kind, known := valueKinds[f.number]
		switch {
		case !known:
			return nil
		case set.number != 0 || f.kind != kind:
			return fmt.Errorf("%w: a Value has more than one kind", errMalformed)
		}
		set = f
		return nil
	})
	switch {
	case err != nil:
		return err
	case set.number == 0:
		return fmt.Errorf("%w: a Value has no kind", errMalformed)
	}
	switch f := set; f.number {
	case nullValue:
		w.text("null")
	case numberValue:
		return w.number(math.Float64frombits(f.value))
	case stringValue:
		return w.quoted(f.bytes)
	case boolValue:
		w.text(map[bool]string{true: "true", false: "false"}[protowire.DecodeBool(f.value)])
	case structValue:
		return w.structure(f.bytes, depth)
	default:
		return w.items(f.bytes, "[", "]", depth, func(item []byte) error { return w.value(item, depth-1) })
	}
	return nil
}
