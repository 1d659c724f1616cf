package uamp

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"skep/host/internal/api/http3"
	"skep/host/internal/gateway/uamp/envelope"
)

// quicStreamHeader has the number of the QUIC stream on which an envelope came.
const quicStreamHeader = "UAMP-QUIC-Stream"

// nameQUICStream sends the caller of a request over HTTP/3 the number of its QUIC stream, by
// which requests on the same connection find the stream with the answer (U-053, D-U9). It returns
// what the caller is to call the stream: in the profile strict, that number where the envelope
// has no stream_id, as in section 7 of the document.
func (g *Gateway) nameQUICStream(w http.ResponseWriter, r *http.Request, e envelope.Envelope, stream string) string {
	s, ok := http3.StreamOf(r.Context())
	if !ok {
		return stream
	}
	s.SetName(stream)
	number := strconv.FormatInt(s.ID, 10)
	w.Header().Set(quicStreamHeader, number)
	if e.Stream == "" && g.isNumbered(stream) {
		return number
	}
	return stream
}

// isNumbered reports whether a stream is called by its QUIC number on its connection.
func (g *Gateway) isNumbered(stream string) bool {
	id, isOwn := strings.CutPrefix(stream, ownStream)
	return g.Strict && isOwn && uuid.Validate(id) == nil
}

// quicAlias returns the stream that a number of a QUIC stream of the request's connection
// stands for.
func quicAlias(ctx context.Context, number string) (stream string, ok bool) {
	s, ok := http3.StreamOf(ctx)
	id, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil {
		return "", false
	}
	return s.NameOf(id)
}
