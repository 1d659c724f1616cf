package amp

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/swarm"
)

// reply is what a message gets: the answer of an exchange, a payload at once, or nothing
// but that it was taken.
type reply struct {
	exchange gateway.Exchange
	owed     bool
	// accepted answers at once that the message was taken; the answer comes later.
	accepted bool
	payload  *responsePayload
	// relay asks the registered agent that answers; nil where none does.
	relay *relay
}

// serveInvoke takes one message (M-090).
func (g *Gateway) serveInvoke(w http.ResponseWriter, r *http.Request) {
	out := replier{g: g, w: w, r: r, token: message.AMP}
	in, c, text, ok := out.receive()
	if !ok {
		return
	}
	if in.Headers.Hints[hintTrace] == nil {
		in.Headers.Hints = gateway.WithTrace(in.Headers.Hints, "", swarm.HeaderTrace(r.Header))
	}
	got, err := g.accept(r.Context(), c, in, text, false)
	g.record(c, in, text, got, err)
	switch {
	case err != nil:
		out.refuse(c, in, err)
	case got.payload != nil:
		out.respond(http.StatusOK, c, g.responseTo(c, in, *got.payload))
	case got.relay != nil:
		out.serveRelay(c, *got.relay)
	case !got.owed:
		w.WriteHeader(http.StatusAccepted)
	case got.accepted:
		out.serveAccepted(c, got.exchange)
	default:
		out.serveExchange(c, got.exchange, gateway.PreferredWait(r, g.Hold, g.Hold))
	}
}

// receive reads the message of a request and finds its sender. It answers a message that is
// refused, and returns false.
func (o *replier) receive() (in message.Received, c gateway.Caller, text []byte, ok bool) {
	c, shown, err := o.g.identifyRequest(o.r)
	if err != nil {
		o.refuse(c, message.Received{}, err)
		return in, c, nil, false
	}
	text, err = wire.ReadBody(http.MaxBytesReader(o.w, o.r.Body, o.g.MaxBody), o.r.ContentLength)
	if err != nil && !errors.As(err, new(*http.MaxBytesError)) {
		return in, c, nil, false // the host answers for a body that it could not read
	}
	if err != nil {
		err = errMessageTooLarge
	}
	in, c, err = o.g.read(o.g.reader, o.r, c, shown, text, err)
	o.token = in.Token
	if err != nil {
		o.g.record(c, in, text, reply{}, err)
		o.refuse(c, in, err)
	}
	return in, c, text, err == nil
}

// errMessageTooLarge refuses a message that is longer than one may be.
var errMessageTooLarge = message.Faultf(message.InvalidSchema, message.ReasonTooLarge, "the message is larger than max_body of [gateways.amp]")

// read reads a message and finds its sender, who is proven before anything is said of what
// he sent. textless is why there is no text, nil where there is.
func (g *Gateway) read(reader message.Reader, r *http.Request, c gateway.Caller, shown bool, text []byte, textless error) (message.Received, gateway.Caller, error) {
	if textless != nil {
		in := message.Received{Token: message.AMP}
		if !shown {
			return in, c, errNoCredential
		}
		return in, c, textless
	}
	in, readErr := reader.Read(text)
	var err error
	if shown {
		err = checkCredentials(r, in)
	} else {
		c, err = g.identifyMessage(r, in)
	}
	if err == nil {
		err = readErr
	}
	if err == nil {
		err = g.checkProof(r.Context(), c, &in, signatureWindow)
	}
	return in, c, err
}

func (g *Gateway) record(c gateway.Caller, in message.Received, text []byte, got reply, err error) {
	event := gateway.Event{Caller: c, Foreign: in.ID, Type: string(in.Type), Text: text, Task: got.exchange.Task.Task}
	g.Runtime.Record(event.WithOutcome(got.exchange.Duplicate, err))
}

// answerHandler serves the answers to messages that were taken before, below a path.
func (g *Gateway) answerHandler(path string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := replier{g: g, w: w, r: r, token: tokenOfPath(path)}
		c, shown, err := g.identifyRequest(r)
		if err == nil && !shown {
			err = errNoCredential
		}
		if err != nil {
			out.refuse(c, message.Received{}, err)
			return
		}
		x, err := g.findExchange(r.Context(), c, strings.TrimPrefix(r.URL.Path, path))
		if err != nil {
			out.refuse(c, message.Received{}, err)
			return
		}
		out.serveExchange(c, x, gateway.PreferredWait(r, 0, g.Hold))
	})
}

// findExchange returns an exchange of the caller by the last part of its path.
func (g *Gateway) findExchange(ctx context.Context, c gateway.Caller, part string) (x gateway.Exchange, err error) {
	id, ok := gateway.IDOfPath(part)
	if ok && !c.IsUser() {
		x, err = g.Runtime.Find(ctx, c, id)
	}
	if !ok || c.IsUser() || errors.Is(err, gateway.ErrUnknown) {
		return x, message.Faultf(message.AgentNotFound, message.ReasonMessage, "there is no message with this id")
	}
	return x, err
}

// tokenOfPath is the token whose prefix a path has.
func tokenOfPath(path string) string {
	if strings.HasPrefix(path, prefixes[0]) {
		return message.AIP
	}
	return message.AMP
}

// prefixOf is the prefix of the paths of a token.
func prefixOf(token string) string {
	if token == message.AMP {
		return prefixes[1]
	}
	return prefixes[0]
}

// replier answers one request.
type replier struct {
	g     *Gateway
	w     http.ResponseWriter
	r     *http.Request
	token string
}

// serveExchange writes the answer of an exchange, or after a time where it will be.
func (o replier) serveExchange(c gateway.Caller, x gateway.Exchange, wait time.Duration) {
	n, err := readNote(x)
	if err != nil {
		o.refuse(c, message.Received{}, err)
		return
	}
	o.token = n.Token
	a, err := o.g.await(o.r.Context(), c, x, n, wait)
	switch {
	case err == nil:
		m, status := o.g.answerTo(c, x, n, a)
		o.respond(status, c, m)
	case errors.Is(err, gateway.ErrHeld), errors.Is(err, gateway.ErrDraining):
		o.serveAccepted(c, x)
	case o.r.Context().Err() != nil: // the caller has left, or may not call any more
		o.refuse(c, message.Received{}, message.Faultf(message.AuthenticationFailed, message.ReasonCredential, "the credential does not hold any more"))
	default:
		o.refuse(c, n.received(), err)
	}
}

// serveAccepted answers that a message was taken, and where its answer will be.
func (o replier) serveAccepted(c gateway.Caller, x gateway.Exchange) {
	n, err := readNote(x)
	if err != nil {
		o.refuse(c, message.Received{}, err)
		return
	}
	o.token = n.Token
	o.w.Header().Set("Location", locationOf(n.Token, x))
	o.respond(http.StatusAccepted, c, o.g.acceptedTo(c, x, n))
}

// serveRelay writes the answer of a registered agent.
func (o replier) serveRelay(c gateway.Caller, r relay) {
	m := r.run(o.r.Context())
	status := http.StatusOK
	if f := faultIn(m); f != nil {
		status = f.Status()
	}
	o.token = r.in.Token
	o.respond(status, c, m)
}

// refuse answers a message that was not taken with an error message (M-077).
func (o replier) refuse(c gateway.Caller, in message.Received, err error) {
	f := o.g.faultOf(err)
	if f.RetryAfter > 0 {
		o.w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter/time.Second)))
	}
	if f.Code == message.AuthenticationFailed && f.Status() == http.StatusUnauthorized {
		o.w.Header().Set("WWW-Authenticate", "Bearer")
	}
	o.respond(f.Status(), c, errorTo(in, f))
}

// respond writes a message, signed for a realm with which a key is shared.
func (o replier) respond(status int, c gateway.Caller, m message.Message) {
	text, err := o.g.write(c, o.token, m)
	if err != nil {
		o.g.Log.Error("amp: an answer cannot be written", "error", err)
		http.Error(o.w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	o.w.Header().Set("Content-Type", "application/json")
	o.w.WriteHeader(status)
	_, _ = o.w.Write(text) // the caller may have left
}

// write returns the text of a message for a realm.
func (g *Gateway) write(c gateway.Caller, token string, m message.Message) ([]byte, error) {
	if p, ok := g.Runtime.Partner(c.Realm); ok && len(p.HMACKey) > 0 {
		if err := message.Sign(&m, p.HMACKey); err != nil {
			return nil, err
		}
	}
	return message.Write(token, m)
}
