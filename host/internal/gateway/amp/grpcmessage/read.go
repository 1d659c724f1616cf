package grpcmessage

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"skep/host/internal/gateway/wire"
	"skep/spec/gateways/amp/amppb"
)

// Errors of a message without a text.
var (
	// ErrTooLarge is the error of a message whose text is larger than it may be.
	ErrTooLarge = errors.New("the message is too large")
	// ErrDeep is the error of a payload with too many levels.
	ErrDeep = errors.New("the message is nested too deep")
	// errMalformed is the error of bytes that are no Message.
	errMalformed = errors.New("the message is no amp.v1.Message")
)

// Fields of a Message that are beside the message of the document.
const (
	rawField      = protowire.Number(1)
	protocolField = protowire.Number(2)
)

// Reader reads the text of messages. The library's own form of a Struct takes many times the bytes
// of the message, so the text is written without it.
type Reader struct {
	// Protocol is the one of a message that names none, as AMP/1.0.
	Protocol string
	// MaxText bounds the text, in bytes. MaxDepth bounds the levels of a payload.
	MaxText, MaxDepth int
}

// Text returns the text of a message: its raw_json, or else the object of the members that are
// set. hasMembers reports whether some are set. The text may be a part of raw.
func (r Reader) Text(raw []byte) (text []byte, hasMembers bool, err error) {
	protocol := r.Protocol
	err = fields(raw, func(f field) error {
		switch {
		case f.number == rawField && f.kind == protowire.BytesType:
			text = f.bytes
		case f.number == protocolField && f.kind == protowire.BytesType && len(f.bytes) > 0:
			protocol, hasMembers = string(f.bytes), true
		default:
			hasMembers = true
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, hasMembers, err
	case len(text) > r.MaxText:
		return nil, hasMembers, ErrTooLarge
	case len(text) > 0:
		return text, hasMembers, nil
	}
	w := &writer{max: r.MaxText}
	w.text(`{"protocol":`)
	err = w.quoted([]byte(protocol))
	w.text(`,"message":`)
	if err == nil {
		err = w.object(raw, (&amppb.Message{}).ProtoReflect().Descriptor(), r.MaxDepth)
	}
	w.text(`}`)
	if err == nil && len(w.out) > r.MaxText {
		err = ErrTooLarge
	}
	return w.out, hasMembers, err
}

// field is one field on the wire. bytes is set for a kind with a length, value for the others.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte
	value  uint64
}

// fields calls each for the fields of a message, in order.
func fields(raw []byte, each func(field) error) error {
	for len(raw) > 0 {
		var f field
		var n, of int
		if f.number, f.kind, n = protowire.ConsumeTag(raw); n < 0 {
			return errMalformed
		}
		switch f.kind {
		case protowire.BytesType:
			f.bytes, of = protowire.ConsumeBytes(raw[n:])
		case protowire.VarintType:
			f.value, of = protowire.ConsumeVarint(raw[n:])
		case protowire.Fixed64Type:
			f.value, of = protowire.ConsumeFixed64(raw[n:])
		case protowire.Fixed32Type:
			_, of = protowire.ConsumeFixed32(raw[n:])
		default: // groups, which no field of the service is
			return errMalformed
		}
		if of < 0 {
			return errMalformed
		}
		if err := each(f); err != nil {
			return err
		}
		raw = raw[n+of:]
	}
	return nil
}

// writer writes JSON of at most so many bytes, and a few more before it fails.
type writer struct {
	out []byte
	max int
}

func (w *writer) text(s string) { w.out = append(w.out, s...) }

// quoted writes a text.
func (w *writer) quoted(text []byte) error {
	switch {
	case len(w.out)+len(text) > w.max:
		return ErrTooLarge
	case !utf8.Valid(text):
		return fmt.Errorf("%w: a text is not UTF-8", errMalformed)
	}
	raw, err := wire.Encode(string(text))
	w.out = append(w.out, raw...)
	return err
}

func (w *writer) number(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("%w: a number is none of JSON", errMalformed)
	}
	raw, err := wire.Encode(f)
	w.out = append(w.out, raw...)
	return err
}

// object writes a message by its description: each field that is set under its name. A member that
// is there twice is so in the text as well, which has then no reading.
func (w *writer) object(raw []byte, of protoreflect.MessageDescriptor, depth int) error {
	first := true
	w.text("{")
	err := fields(raw, func(f field) error {
		d := of.Fields().ByNumber(f.number)
		if d == nil || of.Name() == "Message" && (f.number == rawField || f.number == protocolField) || d.Kind() == protoreflect.StringKind && f.kind == protowire.BytesType && len(f.bytes) == 0 {
			return nil // unknown, or as if it were not set
		}
		w.separate(&first)
		w.text(`"` + string(d.Name()) + `":`)
		return w.member(f, d, depth)
	})
	w.text("}")
	return err
}

func (w *writer) separate(first *bool) {
	if !*first {
		w.text(",")
	}
	*first = false
}

// kinds are the kinds of fields on the wire.
var kinds = map[protoreflect.Kind]protowire.Type{
	protoreflect.StringKind: protowire.BytesType, protoreflect.MessageKind: protowire.BytesType,
	protoreflect.DoubleKind: protowire.Fixed64Type, protoreflect.Int64Kind: protowire.VarintType,
}

func (w *writer) member(f field, d protoreflect.FieldDescriptor, depth int) error {
	if kinds[d.Kind()] != f.kind {
		return fmt.Errorf("%w: %s has another type", errMalformed, d.Name())
	}
	switch {
	case d.Kind() == protoreflect.StringKind:
		return w.quoted(f.bytes)
	case d.Kind() == protoreflect.DoubleKind:
		return w.number(math.Float64frombits(f.value))
	case d.Kind() == protoreflect.Int64Kind:
		w.text(strconv.FormatInt(int64(f.value), 10))
		return nil
	case d.Message().FullName() == "google.protobuf.Struct":
		return w.structure(f.bytes, depth)
	}
	return w.object(f.bytes, d.Message(), depth)
}
