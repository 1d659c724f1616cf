package grpcconn

import (
	"encoding/base64"
	"errors"
	"io"
	"net/url"
	"strconv"
	"strings"

	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// end returns the status of the call, io.EOF for none.
func (s *call) end() error {
	trailer := s.resp.Trailer
	if s.resp.Header.Get("Grpc-Status") != "" { // an answer without a body
		trailer = s.resp.Header
	}
	s.ended = trailer
	code, err := strconv.ParseUint(trailer.Get("Grpc-Status"), 10, 8)
	if err != nil {
		return errors.New("the call has ended without a status")
	}
	if code == uint64(codes.OK) {
		return io.EOF
	}
	details := &statuspb.Status{}
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(trailer.Get("Grpc-Status-Details-Bin"), "="))
	if err == nil && len(raw) > 0 && proto.Unmarshal(raw, details) == nil && details.Code == int32(code) {
		return status.FromProto(details).Err()
	}
	text, err := url.PathUnescape(trailer.Get("Grpc-Message"))
	if err != nil {
		text = trailer.Get("Grpc-Message")
	}
	return status.Error(codes.Code(code), text)
}
