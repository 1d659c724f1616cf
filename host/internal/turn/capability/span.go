package capability

import (
	"context"
	"maps"
	"slices"

	"skep/abi"
)

// span begins or ends a span that operators see.
func (o *ops) span(_ context.Context, req []byte) ([]byte, *abi.Error) {
	var ask abi.SpanRequest
	fault := decode(abi.OpSpan, req, &ask)
	if fault == nil {
		fault = checkSpan(ask)
	}
	if fault == nil {
		fault = checkAttributes(ask.Attributes)
	}
	switch {
	case fault != nil:
	case ask.ID == 0:
		ask.ID, fault = o.turn.BeginSpan(o.prefix, ask)
	default:
		fault = o.turn.EndSpan(o.prefix, ask)
	}
	if fault != nil {
		return nil, fault
	}
	return encode(abi.OpSpan, abi.SpanResponse{ID: ask.ID})
}

func checkSpan(ask abi.SpanRequest) *abi.Error {
	switch {
	case (ask.Name == "") == (ask.ID == 0):
		return abi.Errorf(abi.CodeInvalid, abi.OpSpan, "members", "the request must have either name, and begins a span, or id, and ends one")
	case ask.ID < 0:
		return abi.Errorf(abi.CodeInvalid, abi.OpSpan, "id", "id must be what span has answered, not %d", ask.ID)
	case ask.ID == 0 && ask.Error != "":
		return abi.Errorf(abi.CodeInvalid, abi.OpSpan, "error", "error comes with id, when a span ends")
	}
	fault := checkSpanText("name", ask.Name, abi.MaxSpanName)
	if fault == nil {
		fault = checkSpanText("error", ask.Error, abi.MaxSpanError)
	}
	return fault
}

func checkAttributes(attributes map[string]string) *abi.Error {
	if len(attributes) > abi.MaxSpanAttributes {
		return abi.Errorf(abi.CodeLimit, abi.OpSpan, "attributes", "a span of %d attributes, at most %d", len(attributes), abi.MaxSpanAttributes)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if name == "" {
			return abi.Errorf(abi.CodeInvalid, abi.OpSpan, "attributes", "the name of an attribute must not be empty")
		}
		fault := checkSpanText("attribute's name", name, abi.MaxSpanKey)
		if fault == nil {
			fault = checkSpanText("attribute's value", attributes[name], abi.MaxSpanValue)
		}
		if fault != nil {
			return fault
		}
	}
	return nil
}

func checkSpanText(what, text string, most int) *abi.Error {
	switch {
	case len(text) > most:
		return abi.Errorf(abi.CodeLimit, abi.OpSpan, "size", "the %s has %d bytes, at most %d", what, len(text), most)
	case hasControlChars(text):
		return abi.Errorf(abi.CodeInvalid, abi.OpSpan, "text", "the %s holds a control character", what)
	}
	return nil
}
