package uamp

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp/envelope"
)

// streamPath begins the addresses of streams.
const streamPath = "/v1/stream/"

// ownStream begins the ids of streams whose envelopes have none.
const ownStream = "str-"

// streamOf is the id of the stream with the answer to an envelope (D-U11).
func streamOf(e envelope.Envelope) string {
	if e.Stream != "" {
		return e.Stream
	}
	return ownStream + string(e.ID)
}

// streamNameIn is the name of a stream in the address that a partner has given, empty for none.
func streamNameIn(address string) string {
	name, err := url.PathUnescape(address[strings.LastIndexAny(address, "/#")+1:])
	if err != nil {
		return ""
	}
	return name
}

// kindStream is the kind of the records of streams that callers have named.
const kindStream = "stream"

// streamRecord is the envelope whose answer a stream has.
type streamRecord struct {
	ID string `json:"id"`
}

func streamKey(c gateway.Caller, stream string) state.Key {
	return state.Key{Tenant: c.Principal.Tenant, Gateway: Name, Realm: c.Realm, Kind: kindStream, Name: stream}
}

// loadStream returns the record of a stream that a caller has named; it is empty, of
// version 0, if there is none.
func (g *Gateway) loadStream(ctx context.Context, c gateway.Caller, stream string) (r streamRecord, version int64, err error) {
	return state.Load[streamRecord](ctx, g.state, streamKey(c, stream))
}

// reserveStream refuses an envelope whose stream_id another one has. The caller ends it when the
// envelope is kept: no other envelope gets the stream meanwhile.
func (g *Gateway) reserveStream(ctx context.Context, c gateway.Caller, e envelope.Envelope) (end func(), err error) {
	if e.Stream == "" {
		return func() {}, nil
	}
	key := streamKey(c, e.Stream)
	other, isOpening := g.opening.LoadOrStore(key, e.ID)
	if isOpening && other != e.ID {
		return nil, streamTaken()
	}
	end = func() {
		if !isOpening { // a repeat at the same time leaves that to the first
			g.opening.Delete(key)
		}
	}
	if err := g.checkStream(ctx, c, e); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

func streamTaken() error {
	return &envelope.Fault{Code: envelope.MissingSeq, Text: "the stream_id is in use by another envelope, whose stream has not ended", RetryAfter: busyPause}
}

// checkStream refuses an envelope whose stream has another envelope's answer that is not
// whole yet, or the name of another envelope's stream without a stream_id.
func (g *Gateway) checkStream(ctx context.Context, c gateway.Caller, e envelope.Envelope) error {
	if id, isOwn := strings.CutPrefix(e.Stream, ownStream); isOwn && id != string(e.ID) && uuid.Validate(id) == nil {
		return envelope.Faultf(envelope.MissingSeq, "the stream_id is the name of the stream of another envelope, %s", id)
	}
	if alias, isNumber := quicAlias(ctx, e.Stream); isNumber && g.isNumbered(alias) && alias != ownStream+string(e.ID) {
		return envelope.Faultf(envelope.MissingSeq, "the stream_id is the number of the QUIC stream of another envelope of this connection")
	}
	r, version, err := g.loadStream(ctx, c, e.Stream)
	if err != nil || version == 0 || r.ID == string(e.ID) {
		return err
	}
	x, err := g.Runtime.Find(ctx, c, r.ID)
	if errors.Is(err, gateway.ErrUnknown) {
		return nil // it is kept no more
	}
	if err != nil {
		return err
	}
	n, err := readNote(x)
	if err != nil {
		return err
	}
	a, ok, err := g.look(ctx, x, n)
	if err == nil && !(ok && isFinal(a)) {
		err = streamTaken()
	}
	return err
}

// isFinal reports whether an answer is the last of its exchange.
func isFinal(a gateway.Answer) bool {
	_, over := outcomes[a.Outcome]
	return over
}

// keepStream remembers whose answer a stream has that a caller has named, unless its name has
// the envelope's id. A repeat of the envelope does it again, since it may follow a crash, but where
// an envelope that came later has the name.
func (g *Gateway) keepStream(ctx context.Context, c gateway.Caller, x gateway.Exchange, e envelope.Envelope) error {
	if e.Stream == "" {
		return nil
	}
	for {
		r, version, err := g.loadStream(ctx, c, e.Stream)
		if err != nil || version != 0 && r.ID == string(e.ID) || version == 0 && e.Stream == ownStream+string(e.ID) {
			return err
		}
		if x.Duplicate && version != 0 {
			other, err := g.Runtime.Find(ctx, c, r.ID)
			if err == nil && other.Accepted.After(x.Accepted) {
				return nil
			}
			if err != nil && !errors.Is(err, gateway.ErrUnknown) {
				return err
			}
		}
		value, err := json.Marshal(streamRecord{string(e.ID)})
		if err != nil {
			return err
		}
		_, err = g.state.Put(ctx, state.Record{Key: streamKey(c, e.Stream), Version: version, Value: value, Expires: time.Now().Add(g.Keep)})
		if !errors.Is(err, state.ErrVersion) {
			return err
		}
	}
}

// findStream is the exchange of a stream of the caller, by its name or by the number of a QUIC
// stream of the request's connection.
func (g *Gateway) findStream(ctx context.Context, c gateway.Caller, stream string) (gateway.Exchange, error) {
	alias, isNumber := quicAlias(ctx, stream)
	if isNumber && g.isNumbered(alias) {
		return g.findNamed(ctx, c, alias)
	}
	x, err := g.findNamed(ctx, c, stream)
	if isNumber && errors.Is(err, unknownStream) {
		return g.findNamed(ctx, c, alias)
	}
	return x, err
}

// findNamed is the exchange of a stream of the caller by its name.
func (g *Gateway) findNamed(ctx context.Context, c gateway.Caller, stream string) (gateway.Exchange, error) {
	r, version, err := g.loadStream(ctx, c, stream)
	if err != nil {
		return gateway.Exchange{}, err
	}
	id, own := strings.CutPrefix(stream, ownStream)
	switch {
	case version != 0:
		id = r.ID
	case !own:
		return gateway.Exchange{}, unknownStream
	}
	x, err := g.Runtime.Find(ctx, c, id)
	if errors.Is(err, gateway.ErrUnknown) {
		err = unknownStream
	}
	return x, err
}

// unknownStream is the same for streams that there are not for a caller.
var unknownStream = envelope.Faultf(envelope.UnknownRecipient, "there is no such stream")
