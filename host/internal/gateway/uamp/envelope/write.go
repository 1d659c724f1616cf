package envelope

import (
	"crypto/sha256"
	"slices"
	"strconv"

	"skep/host/internal/gateway/wire"
)

// maxDepth bounds the levels of envelopes of ours.
const maxDepth = 1000

// Text is an envelope of ours as it is sent: in a form that is canonical in every reading, with
// ids as URNs (D-U1), times in UTC, and without defaults.
func (e Envelope) Text() ([]byte, error) {
	text, begin, err := e.unsigned()
	if err != nil || e.Sig == "" {
		return text, err
	}
	return slices.Insert(text, begin, e.signature()...), nil
}

// Sum returns the hash that the signature of an envelope of ours covers.
func (e Envelope) Sum() (sum [sha256.Size]byte, err error) {
	text, _, err := e.unsigned()
	return sha256.Sum256(text), err
}

// Seal signs an envelope of ours, and returns it as it is sent.
func (e Envelope) Seal(sign func(sum [sha256.Size]byte) (string, error)) ([]byte, error) {
	text, begin, err := e.unsigned()
	if err != nil {
		return nil, err
	}
	if e.Sig, err = sign(sha256.Sum256(text)); err != nil {
		return nil, err
	}
	return slices.Insert(text, begin, e.signature()...), nil
}

// MarshalJSON implements [json.Marshaler].
func (e Envelope) MarshalJSON() ([]byte, error) { return e.Text() }

// signature is the member with the signature, and the comma behind it.
func (e Envelope) signature() []byte {
	return append(wire.AppendText([]byte(`"sig":`), e.Sig), ',')
}

// roomForMembers is more than what most envelopes have besides their texts, in bytes.
const roomForMembers = 1 << 10

// unsigned is the canonical form without the signature (RFC 8785), and where that is inserted. The
// names of the members are known, so nothing is sorted but ext.
func (e Envelope) unsigned() (text []byte, signature int, err error) {
	out := make([]byte, 0, len(e.Body.Content)+len(e.CapToken)+len(e.Sig)+roomForMembers)
	out = e.Body.appendTo(append(out, `{"body":`...))
	out = appendMember(out, "cap_token", e.CapToken)
	out = e.appendContext(out)
	if e.Window != DefaultWindow && e.Window != 0 {
		out = strconv.AppendInt(append(out, `,"delta_window":`...), int64(e.Window), 10)
	}
	if len(e.Ext) > 0 {
		if out, err = wire.AppendObject(append(out, `,"ext":`...), e.Ext, maxDepth-1); err != nil {
			return nil, 0, err
		}
	}
	out = wire.AppendText(append(out, `,"from":`...), e.From)
	out = wire.AppendText(append(out, `,"id":`...), e.ID.urn())
	out = wire.AppendText(append(out, `,"intent":`...), string(e.Intent))
	out = appendMember(out, "reply_to", e.ReplyTo.urn())
	signature = len(out) + 1
	out = appendMember(out, "stream_id", e.Stream)
	out = e.appendTo(out)
	out = wire.AppendText(append(out, `,"ts":`...), e.Time.UTC().Format(wireTime))
	return append(out, '}'), signature, nil
}

// appendMember writes a member and the comma before it, nothing for an empty text.
func appendMember(out []byte, name, text string) []byte {
	if text == "" {
		return out
	}
	return wire.AppendText(append(append(append(out, `,"`...), name...), `":`...), text)
}

func (b Body) appendTo(out []byte) []byte {
	out = append(out, '{')
	if b.Compression != "" && b.Compression != compressionNone {
		out = append(wire.AppendText(append(out, `"compression":`...), b.Compression), ',')
	}
	out = wire.AppendText(append(out, `"content":`...), b.Content)
	if b.Encoding != encodingUTF8 {
		out = appendMember(out, "encoding", b.Encoding)
	}
	return append(wire.AppendText(append(out, `,"type":`...), b.Type), '}')
}

func (e Envelope) appendContext(out []byte) []byte {
	begin := `,"context":[`
	for _, r := range e.Context {
		out = append(append(out, begin...), '{', '"', 'h', 'a', 's', 'h', '"', ':')
		out = wire.AppendText(out, r.Hash)
		out = append(wire.AppendText(append(out, `,"id":`...), r.ID.urn()), '}')
		begin = ","
	}
	if len(e.Context) > 0 {
		out = append(out, ']')
	}
	return out
}

func (e Envelope) appendTo(out []byte) []byte {
	out = append(out, `,"to":`...)
	if e.To == nil {
		return append(out, "null"...)
	}
	out = append(out, '[')
	for i, id := range e.To {
		if i > 0 {
			out = append(out, ',')
		}
		out = wire.AppendText(out, id)
	}
	return append(out, ']')
}
