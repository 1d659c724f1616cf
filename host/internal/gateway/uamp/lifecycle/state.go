package lifecycle

import "skep/host/internal/gateway/uamp/envelope"

// State is the state of an envelope (U-088).
type State string

// The states of the document.
const (
	New        State = "NEW"
	InProgress State = "IN_PROGRESS"
	Completed  State = "COMPLETED"
	Cancelled  State = "CANCELLED"
	Failed     State = "ERROR"
)

// States are all states, in the order of the document.
func States() []State { return []State{New, InProgress, Completed, Cancelled, Failed} }

// Ended reports whether nothing changes the state any more.
func (s State) Ended() bool { return s == Completed || s == Cancelled || s == Failed }

// Begin is the state of an envelope that was delivered: what wants an answer is in
// progress (U-080, U-082, U-086), anything else is over (U-090).
func Begin(intent envelope.Intent) State {
	switch intent {
	case envelope.Ask, envelope.Propose, envelope.Subscribe:
		return InProgress
	case envelope.Error:
		return Failed
	}
	return Completed
}

// Exchange is an envelope that was sent or received, and its state.
type Exchange struct {
	// Intent is the envelope's own.
	Intent envelope.Intent
	State  State
}

// Next returns the state after an envelope about the exchange: one with its id in
// reply_to, or on its stream. own is set where it comes from who has begun the exchange.
// With an error nothing changes.
func (x Exchange) Next(intent envelope.Intent, own bool) (State, error) {
	switch intent {
	case envelope.Ask, envelope.Propose, envelope.Subscribe, envelope.Inform, envelope.Notify, envelope.Progress:
		return x.tell(intent, own)
	case envelope.Cancel:
		return x.cancel(own)
	}
	if own {
		return x.State, x.illegal(intent)
	}
	to := map[envelope.Intent]State{envelope.Confirm: Completed, envelope.Deny: x.denied(), envelope.Error: Failed}[intent]
	if x.State.Ended() && x.State != to { // the first one counts, and a second like it changes nothing (U-089)
		return x.State, x.illegal(intent)
	}
	return to, nil
}

// denied is the state after deny: a refused ask has failed, a refused proposal was
// answered (U-091).
func (x Exchange) denied() State {
	if x.Intent == envelope.Propose {
		return Completed
	}
	return Failed
}

// cancel withdraws a request. Only who has sent it may (U-092), and what is over stays as
// it is.
func (x Exchange) cancel(own bool) (State, error) {
	switch {
	case !own:
		return x.State, envelope.Faultf(envelope.Unauthorized, "only the sender of a request can cancel it")
	case x.State.Ended():
		return x.State, nil
	}
	return Cancelled, nil
}

// tell is for envelopes that are about an exchange and do not end it. An inform that
// answers an ask does (U-089).
func (x Exchange) tell(intent envelope.Intent, own bool) (State, error) {
	switch {
	case intent == envelope.Inform && !own && x.Intent == envelope.Ask && !x.State.Ended():
		return Completed, nil
	case (intent == envelope.Progress || intent == envelope.Notify) && !own && x.State.Ended():
		return x.State, x.illegal(intent)
	}
	return x.State, nil
}

func (x Exchange) illegal(intent envelope.Intent) error {
	return envelope.Faultf(envelope.IllegalState, "%s does not fit %s in the state %s", intent, x.Intent, x.State)
}
