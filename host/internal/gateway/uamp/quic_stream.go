package uamp

import (
	"net/http"
	"strconv"

	"skep/host/internal/api/http3"
)

// quicStreamHeader has the number of the QUIC stream on which an envelope came.
const quicStreamHeader = "UAMP-QUIC-Stream"

// nameQUICStream sends the caller of a request over HTTP/3 the number of its QUIC stream, by
// which requests on the same connection find the stream with the answer (U-053, D-U9).
func nameQUICStream(w http.ResponseWriter, r *http.Request, stream string) {
	if s, ok := http3.StreamOf(r.Context()); ok {
		s.SetName(stream)
		w.Header().Set(quicStreamHeader, strconv.FormatInt(s.ID, 10))
	}
}

// quicAlias returns the stream that a number of a QUIC stream of the request's connection
// stands for.
func quicAlias(r *http.Request, number string) (stream string, ok bool) {
	s, ok := http3.StreamOf(r.Context())
	id, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil {
		return "", false
	}
	return s.NameOf(id)
}
