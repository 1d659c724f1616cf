package uamp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/frame"
	"skep/host/internal/gateway/wire"
)

const (
	// socketPath is the address of the WebSocket (U-054).
	socketPath = "/uamp/1/ws"
	// subprotocol may be offered by a caller.
	subprotocol = "uamp.1"
	// maxSocketStreams bounds the streams that are read on one socket at once.
	maxSocketStreams = 64
	// maxEnded bounds the ended streams that are remembered: acknowledgements of their last
	// deltas are under way.
	maxEnded    = 256
	socketPing  = 30 * time.Second // between two pings
	socketWrite = 10 * time.Second // for one frame
)

// frameConn is what carries the frames of a socket. It is safe for concurrent use.
type frameConn interface {
	// writeFrame writes an envelope or a delta.
	writeFrame(ctx context.Context, text []byte) error
	// shut ends it with a reason.
	shut(code websocket.StatusCode, why *envelope.Fault)
}

// socket is a connection on which frames of envelopes and deltas go in both directions.
type socket struct {
	g      *Gateway
	caller gateway.Caller
	frames frameConn
	// conn is the WebSocket that carries the frames, nil for a stream of gRPC.
	conn *websocket.Conn
	ctx  context.Context
	end  context.CancelCauseFunc
	// denied is closed when the caller's credential does not count any more, nil for a socket that
	// has shown ours.
	denied <-chan struct{}
	// lastRead ends when the caller has sent its last frame, and so acknowledges no more; nil
	// for a WebSocket, whose callers write until it closes.
	lastRead chan struct{}

	mu sync.Mutex
	// streams are those that are read, and the last ones that have ended, by their ids;
	// active counts the former, ended has the latter's ids, the oldest first.
	streams map[string]*socketStream
	active  int
	ended   []string
	running sync.WaitGroup

	// awaited are the frames that attempts of ours wait for, nil on a socket that the partner
	// has opened.
	awaited *awaitedFrames
}

// serveSocket serves a WebSocket to its end.
func (g *Gateway) serveSocket(w http.ResponseWriter, r *http.Request) {
	c, ok := g.identifyCaller(w, r)
	if !ok {
		return
	}
	if c.IsUser() {
		g.refuseUnsigned(w, &envelope.Fault{Code: envelope.Unauthorized, Text: "UAMP is for agents: show a credential of role agent"})
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{subprotocol}})
	if err != nil {
		return // it has answered
	}
	defer conn.CloseNow()
	leave, ok := g.sockets.enter(c)
	if !ok {
		_ = conn.Close(websocket.StatusTryAgainLater, "too many connections: raise sessions of [gateways.uamp]")
		return
	}
	defer leave()
	conn.SetReadLimit(-1) // ReadSocket takes the limit
	s := newSocket(g, c)
	s.conn, s.frames = conn, webFrames{conn}
	s.ctx, s.end = context.WithCancelCause(context.WithoutCancel(r.Context()))
	s.denied = r.Context().Done()
	defer s.running.Wait()
	defer s.end(nil)
	s.running.Go(s.watch)
	s.read()
}

func newSocket(g *Gateway, c gateway.Caller) *socket {
	return &socket{g: g, caller: c, streams: map[string]*socketStream{}}
}

// webFrames carries frames in messages of a WebSocket.
type webFrames struct{ conn *websocket.Conn }

func (w webFrames) writeFrame(ctx context.Context, text []byte) error {
	return w.conn.Write(ctx, websocket.MessageBinary, frame.Append(nil, text))
}

// shut ends the socket with a reason that begins with the document's code, as a status of gRPC
// does, and has at most 123 bytes (https://www.rfc-editor.org/rfc/rfc6455#section-5.5).
func (w webFrames) shut(code websocket.StatusCode, why *envelope.Fault) {
	reason := grpcText(why)
	_ = w.conn.Close(code, strings.ToValidUTF8(reason[:min(len(reason), 123)], ""))
}

// watch ends the socket of a peer that is gone without a word or may not call any more, and those
// of a host that stops.
func (s *socket) watch() {
	gone := make(chan error, 1)
	s.running.Go(func() { gone <- wire.PingSocket(s.ctx, s.conn, socketPing, socketWrite) })
	select {
	case err := <-gone:
		s.end(err)
	case <-s.g.stopped:
		_ = s.conn.Close(websocket.StatusGoingAway, "the host stops")
	case <-s.denied:
		s.frames.shut(websocket.StatusPolicyViolation, credentialOver)
	}
}

// read takes frames until the socket ends.
func (s *socket) read() {
	frames := frame.NewDecoder(int(s.g.MaxBody), s.g.Strict)
	pace := s.g.Pace(s.caller.Principal.Tenant)
	for {
		kind, message, err := wire.ReadSocket(s.ctx, s.conn, s.g.MaxBody+envelopeRoom, pace)
		if errors.Is(err, websocket.ErrMessageTooBig) {
			s.refuseFrame(s.g.tooLarge())
		}
		if errors.Is(err, wire.ErrSlowMessage) || errors.Is(err, wire.ErrNoPlace) {
			s.g.record(s.caller, envelope.Signed{}, nil, received{}, err)
		}
		if err != nil {
			s.end(err)
			return
		}
		list, wrong := frames.Add(message, kind == websocket.MessageText)
		for _, text := range list {
			if !s.take(text) {
				return
			}
		}
		if wrong != nil {
			s.refuseFrame(faultOfFrame(wrong))
			return
		}
	}
}

// faultOfFrame returns why a frame cannot be read.
func faultOfFrame(err error) *envelope.Fault {
	f := &envelope.Fault{Code: envelope.Malformed, Text: err.Error()}
	if errors.Is(err, frame.ErrTooLarge) {
		f.Code = envelope.TooLarge
	}
	return f
}

// refuseFrame ends the socket for what is no frame.
func (s *socket) refuseFrame(f *envelope.Fault) {
	s.g.record(s.caller, envelope.Signed{}, nil, received{}, f)
	code := websocket.StatusUnsupportedData
	if f.Code == envelope.TooLarge {
		code = websocket.StatusMessageTooBig
	}
	s.frames.shut(code, f)
}

// credentialOver ends the connections of a caller whose credential was valid at their start.
var credentialOver = &envelope.Fault{Code: envelope.Unauthenticated, Text: "the credential is not valid any more"}

// take takes one frame with the rights that the configuration in force gives its caller. It
// returns false at the end of the socket.
func (s *socket) take(text []byte) bool {
	c, err := s.g.Runtime.Renew(s.caller)
	if err != nil {
		s.frames.shut(websocket.StatusPolicyViolation, &envelope.Fault{Code: envelope.Unauthenticated, Text: "the caller is not let in any more"})
		return false
	}
	head := readHead(text)
	switch {
	case s.awaited != nil && (s.awaited.hand(s.ctx, head, text) || s.isLate(head)):
		return true
	case head.isDelta:
		return s.takeDelta(c, text)
	}
	return s.takeEnvelope(c, text)
}

// frameHead is what shows where a frame belongs.
type frameHead struct {
	isDelta         bool // it has a delta_seq
	Stream, ReplyTo string
	Intent          envelope.Intent
}

// mayAnswer reports whether the frame is an envelope that can be a receipt of another, or its answer.
func (h frameHead) mayAnswer() bool {
	switch h.Intent {
	case envelope.Ask, envelope.Propose, envelope.Subscribe, envelope.Cancel:
		return false
	}
	return !h.isDelta
}

// readHead finds what a frame has; what is wrong with it shows when all of it is read.
func readHead(text []byte) frameHead {
	all, _ := wire.Members(text)
	stream, _ := wire.Text(all["stream_id"])
	replyTo, _ := wire.Text(all["reply_to"])
	intent, _ := wire.Text(all["intent"])
	return frameHead{all["delta_seq"] != nil, stream, replyTo, envelope.Intent(intent)}
}

// isLate reports whether a frame that no attempt waits for any more means nothing: a receipt,
// or a delta of a stream that is not written on the socket.
func (s *socket) isLate(head frameHead) bool {
	if !head.isDelta {
		return head.Intent == envelope.Progress
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[head.Stream] == nil
}

// takeOther takes an envelope that an attempt has got and that is no answer, with the rights that
// the configuration in force gives its caller.
func (s *socket) takeOther(text []byte) {
	if c, err := s.g.Runtime.Renew(s.caller); err == nil {
		s.takeEnvelope(c, text)
	}
}

// takeEnvelope does what an envelope wants. A receipt shows that it is kept; the answer
// follows as deltas.
func (s *socket) takeEnvelope(c gateway.Caller, text []byte) bool {
	e, x, err := s.g.receive(s.ctx, c, text, nil)
	s.g.record(c, e, text, x, err)
	switch {
	case err != nil && e.From == "":
		s.frames.shut(websocket.StatusInvalidFramePayloadData, s.g.faultOf(err))
		return false
	case err != nil:
		return s.refuse(c, e.Envelope, err)
	case e.Intent != envelope.Progress && !s.confirmReceipt(c, e.Envelope, x):
		return false
	case x.stream != "":
		return s.open(c, x.stream, x.Exchange, 0)
	}
	return true
}

// confirmReceipt tells that an envelope is kept, and which of its recipients there are not.
func (s *socket) confirmReceipt(c gateway.Caller, e envelope.Envelope, x received) bool {
	if len(x.missing) > 0 {
		text, err := s.g.signedError(s.g.host.String(), e, missingFault(x.missing))
		return s.write(text, err)
	}
	body, err := json.Marshal(map[string]any{"accepted": true})
	if err != nil {
		return s.write(nil, err)
	}
	return s.write(s.g.sign(envelope.Envelope{
		ID: envelope.NewID(), Time: time.Now(), From: s.g.answerer(c, e), To: []string{e.From}, Intent: envelope.Progress,
		ReplyTo: e.ID, Stream: x.stream, Window: envelope.DefaultWindow, Body: envelope.NewBody("application/json", body),
	}))
}

// refuse answers an envelope that was not taken. Errors do not answer each other.
func (s *socket) refuse(c gateway.Caller, e envelope.Envelope, err error) bool {
	if e.Intent == envelope.Error {
		return true
	}
	return s.write(s.g.signedError(s.g.answerer(c, e), e, s.g.faultOf(err)))
}

// takeDelta takes an acknowledgement. That of a stream which is not read on the socket opens
// it there, after the delta that is acknowledged, and so does one of less than was
// acknowledged of an ended stream (U-056, U-064).
func (s *socket) takeDelta(c gateway.Caller, text []byte) bool {
	name, seq, err := s.g.readAck(text)
	if err == nil {
		err = s.acknowledge(c, name, seq)
	}
	switch {
	case err == nil:
		return true
	case name == "": // no delta can answer it
		s.frames.shut(websocket.StatusInvalidFramePayloadData, s.g.faultOf(err))
		return false
	}
	payload, err := json.Marshal(refusedAck(s.g.faultOf(err), seq))
	if err != nil {
		return s.write(nil, err)
	}
	return s.writeDelta(envelope.Delta{Seq: max(0, seq), Stream: name, Time: time.Now(), Type: envelope.DeltaError, Payload: payload})
}

// refusedAck is the payload of a delta that refuses an acknowledgement: details.ack shows that
// it is no delta of the stream.
func refusedAck(f *envelope.Fault, seq int) errorBody {
	body := bodyOf(f)
	body.Details = map[string]any{"ack": seq}
	maps.Copy(body.Details, f.Details)
	return body
}

func (s *socket) acknowledge(c gateway.Caller, name string, seq int) error {
	s.mu.Lock()
	known := s.streams[name]
	reread := known == nil || known.over && seq+1 < known.acked
	s.mu.Unlock()
	if !reread {
		return s.acknowledgeKnown(known, seq)
	}
	x, err := s.g.findStream(s.ctx, c, name)
	if err != nil {
		return err
	}
	return s.follow(c, name, x, seq+1)
}

// open reads the stream of an envelope, or refuses it. The envelope is kept all the same.
func (s *socket) open(c gateway.Caller, name string, x gateway.Exchange, from int) bool {
	err := s.follow(c, name, x, from)
	if err == nil {
		return true
	}
	n, noteErr := readNote(x)
	if noteErr != nil {
		return s.write(nil, noteErr)
	}
	return s.write(s.g.signedError(s.g.host.String(), envelope.Envelope{ID: envelope.ID(x.ID), From: n.From, Stream: name}, s.g.faultOf(err)))
}

func (s *socket) writeDelta(d envelope.Delta) bool {
	text, err := json.Marshal(d)
	return s.write(text, err)
}

// write writes a frame; err is why there is none. A peer that does not read loses its
// connection. It returns false at the end of the socket.
func (s *socket) write(text []byte, err error) bool {
	if err != nil {
		s.g.Log.Error("uamp: a frame cannot be written", "error", err)
		return true
	}
	ctx, cancel := context.WithTimeout(s.ctx, socketWrite)
	defer cancel()
	if err := s.frames.writeFrame(ctx, text); err != nil {
		s.end(err)
		return false
	}
	return true
}

// readAck reads a delta by which a reader acknowledges others: payload.ack counts before
// delta_seq, and -1 acknowledges none.
func (g *Gateway) readAck(text []byte) (stream string, seq int, err error) {
	d, err := g.reader.ReadDelta(text, "")
	if err != nil {
		return "", 0, err
	}
	if d.Type != envelope.DeltaProgress {
		return d.Stream, d.Seq, envelope.Faultf(envelope.IllegalState, "a caller's deltas are acknowledgements: their type is progress")
	}
	var named struct {
		Ack *int `json:"ack"`
	}
	if d.Payload != nil && json.Unmarshal(d.Payload, &named) != nil {
		return d.Stream, d.Seq, envelope.Faultf(envelope.Malformed, "ack is the number of a delta")
	}
	if seq = d.Seq; named.Ack != nil {
		seq = *named.Ack
	}
	if seq < -1 {
		err = envelope.Faultf(envelope.Malformed, "ack is the number of a delta, or -1 for none")
	}
	return d.Stream, seq, err
}
