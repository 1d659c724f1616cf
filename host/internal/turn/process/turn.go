package process

import (
	"context"
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"skep/abi"
	"skep/abi/pluginpb"
	"skep/host/internal/turn"
)

// callOutcome is the result of a call to a process.
type callOutcome struct {
	*pluginpb.Outcome
	err error
}

// exitDelay bounds the time between a broken connection and the exit of the process.
const exitDelay = 2 * time.Second

// invoke runs one turn, or one call of an action. stuck is set if the process still works
// on a turn that is over.
func (p *process) invoke(ctx context.Context, t turn.Turn, name string) (res turn.Result, stuck bool) {
	s := newSession(ctx, t, p.log)
	s.export = name
	p.service.addSession(s)
	call, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	came := p.startCall(call, s)
	exit, out := p.awaitOutcome(ctx, s, came)
	p.service.removeSession(s) // ends the ops of an abandoned turn
	if exit != nil && p.guard.exitReason() == "" {
		stuck = !returnsWithin(came, s.limits.Grace)
	}
	if exit == nil {
		exit = p.outcomeExit(s, out)
		res.Status = abi.Status(out.GetStatus())
	}
	if exit == nil || exit.Kind == turn.ExitFailed {
		res.Output = out.GetOutput()
	}
	res.HostCalls, res.Exit = s.calls, exit
	return res, stuck
}

// startCall sends the session's call to the process.
func (p *process) startCall(ctx context.Context, s *session) <-chan callOutcome {
	came := make(chan callOutcome, 1)
	req := &pluginpb.CallRequest{Input: s.turn.Input, Session: s.token, Clock: s.clock()}
	do := p.agent.Turn
	if s.export == abi.ExportAction {
		do = p.agent.Action
	}
	go func() {
		out, err := do(ctx, req,
			grpc.MaxCallSendMsgSize(math.MaxInt32), grpc.MaxCallRecvMsgSize(int(s.limits.Output)+maxMessage))
		came <- callOutcome{out, err}
	}()
	return came
}

// returnsWithin reports whether the call returns within grace.
func returnsWithin(came <-chan callOutcome, grace time.Duration) bool {
	select {
	case <-came:
		return true
	case <-time.After(grace):
		return false
	}
}

// awaitOutcome waits for the call's outcome, or for an exit that ends the turn earlier.
func (p *process) awaitOutcome(ctx context.Context, s *session, came <-chan callOutcome) (*turn.Exit, callOutcome) {
	off, grace := s.turn.Cancelled, (<-chan time.Time)(nil)
	for {
		select {
		case out := <-came:
			return p.callExit(s, out), out
		case <-ctx.Done():
			return turn.ContextExit(ctx), callOutcome{}
		case <-off:
			off, grace = nil, time.After(s.limits.Grace)
		case <-grace:
			return turn.GraceExit(s.limits), callOutcome{}
		case <-p.guard.done:
			return p.deathExit(), callOutcome{}
		case <-s.panicked:
			return &turn.Exit{Kind: turn.ExitHost, Message: "panic in the host: " + s.panicText}, callOutcome{}
		}
	}
}

// callExit is the exit of a failed call, nil for a successful one.
func (p *process) callExit(s *session, out callOutcome) *turn.Exit {
	switch status.Code(out.err) {
	case codes.OK:
		return nil
	case codes.ResourceExhausted: // the answer exceeds the limit of the call
		return turn.OutputExit(s.limits)
	case codes.Unimplemented:
		return turn.StatusExit(s.export, abi.StatusNotImplemented, nil)
	}
	select {
	case <-p.guard.done:
		return p.deathExit()
	case <-time.After(exitDelay):
	}
	return &turn.Exit{Kind: turn.ExitProcess, Message: "the process did not answer: " + printable(out.err.Error(), maxLine), Cause: out.err}
}

// deathExit is the exit of a turn whose process has ended.
func (p *process) deathExit() *turn.Exit {
	if p.guard.killedForMemory() {
		return turn.MemoryExit("the process took more memory than it may, and was killed")
	}
	return &turn.Exit{Kind: turn.ExitProcess, Message: "the process of the agent died in the turn: " + p.guard.exitReason()}
}

// outcomeExit checks the answer of the process.
func (p *process) outcomeExit(s *session, out callOutcome) *turn.Exit {
	switch {
	case out.GetAbort() != nil:
		return turn.AbortExit(abi.Code(out.Abort.Code), out.Abort.Message)
	case int64(len(out.GetOutput())) > s.limits.Output:
		return turn.OutputExit(s.limits)
	}
	return turn.StatusExit(s.export, abi.Status(out.GetStatus()), out.GetOutput())
}

// describe returns the process's descriptor.
func (p *process) describe(ctx context.Context) (*abi.Descriptor, error) {
	out, err := p.callBeforeTurn(ctx, p.agent.Describe)
	if err != nil {
		return nil, p.startFailure(ctx, fmt.Errorf("describe: %w", err))
	}
	if exit := startExit("Describe", out); exit != nil {
		return nil, exit
	}
	return abi.ParseDescriptor(out.Output)
}

// warm lets a process prepare for turns. A process without Warm is ready.
func (p *process) warm(ctx context.Context) error {
	out, err := p.callBeforeTurn(ctx, p.agent.Warm)
	switch {
	case err != nil:
		return p.startFailure(ctx, fmt.Errorf("warm: %w", err))
	case abi.Status(out.Status) == abi.StatusNotImplemented && out.Abort == nil:
		return p.checkMemory()
	}
	if exit := startExit("Warm", out); exit != nil {
		return exit
	}
	return p.checkMemory()
}

// startExit is the exit of a failed Describe or Warm, nil for success.
func startExit(name string, out *pluginpb.Outcome) *turn.Exit {
	switch {
	case out.Abort != nil:
		return turn.AbortExit(abi.Code(out.Abort.Code), out.Abort.Message)
	case abi.Status(out.Status) != abi.StatusOK:
		return turn.StatusExit(name, abi.Status(out.Status), out.Output)
	}
	return nil
}
