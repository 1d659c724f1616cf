package subprocess

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
	"skep/host/internal/sandbox"
)

// outcome is what comes back from a process, once.
type outcome struct {
	*pluginpb.Outcome
	err error
}

// deathKnell is how long a broken connection may be ahead of the process's end.
const deathKnell = 2 * time.Second

// invoke runs one turn, or one call of an action. stuck says that the process still
// works on it, though nobody waits any more.
func (p *process) invoke(ctx context.Context, t sandbox.Turn, name string) (res sandbox.Result, stuck bool) {
	s := newSession(ctx, t, p.log)
	s.name = name
	p.desk.enter(s)
	call, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	came := p.ask(call, s)
	exit, out := p.await(ctx, s, came)
	p.desk.leave(s) // the ops of a turn that nobody waits for end here
	if exit != nil && p.guard.ended() == "" {
		stuck = !returns(came, s.limits.Grace)
	}
	if exit == nil {
		exit = p.judge(s, out)
		res.Status = abi.Status(out.GetStatus())
	}
	if exit == nil || exit.Kind == sandbox.ExitFailed {
		res.Output = out.GetOutput()
	}
	res.HostCalls, res.Exit = s.calls, exit
	return res, stuck
}

// ask sends the session's call to the process.
func (p *process) ask(ctx context.Context, s *session) <-chan outcome {
	came := make(chan outcome, 1)
	req := &pluginpb.CallRequest{Input: s.turn.Input, Session: s.token, Clock: s.clock()}
	do := p.agent.Turn
	if s.name == abi.ExportAction {
		do = p.agent.Action
	}
	go func() {
		out, err := do(ctx, req,
			grpc.MaxCallSendMsgSize(math.MaxInt32), grpc.MaxCallRecvMsgSize(int(s.limits.Output)+maxMessage))
		came <- outcome{out, err}
	}()
	return came
}

// returns reports whether the process comes to its end with a turn that is over.
func returns(came <-chan outcome, grace time.Duration) bool {
	select {
	case <-came:
		return true
	case <-time.After(grace):
		return false
	}
}

// await waits for the turn's end, or for a reason to wait no more: then there is an
// exit.
func (p *process) await(ctx context.Context, s *session, came <-chan outcome) (*sandbox.Exit, outcome) {
	off, grace := s.turn.Cancelled, (<-chan time.Time)(nil)
	for {
		select {
		case out := <-came:
			return p.broken(s, out), out
		case <-ctx.Done():
			return sandbox.ContextExit(ctx), outcome{}
		case <-off:
			off, grace = nil, time.After(s.limits.Grace)
		case <-grace:
			return sandbox.GraceExit(s.limits), outcome{}
		case <-p.guard.done:
			return p.died(), outcome{}
		case <-s.broken:
			return &sandbox.Exit{Kind: sandbox.ExitHost, Message: "panic in the host: " + s.panic}, outcome{}
		}
	}
}

// broken is the exit of a call that did not come to an answer, nil of one that did.
func (p *process) broken(s *session, out outcome) *sandbox.Exit {
	switch status.Code(out.err) {
	case codes.OK:
		return nil
	case codes.ResourceExhausted: // the answer is larger than the call may take
		return sandbox.OutputExit(s.limits)
	case codes.Unimplemented:
		return sandbox.Ending(s.name, abi.StatusNotImplemented, nil)
	}
	select {
	case <-p.guard.done:
		return p.died()
	case <-time.After(deathKnell):
	}
	return &sandbox.Exit{Kind: sandbox.ExitProcess, Message: "the process did not answer: " + clip(out.err.Error(), maxLine), Cause: out.err}
}

// died is the exit of a turn whose process has ended.
func (p *process) died() *sandbox.Exit {
	if p.guard.tooBig() {
		return sandbox.MemoryExit("the process took more memory than it may, and was killed")
	}
	return &sandbox.Exit{Kind: sandbox.ExitProcess, Message: "the process of the agent died in the turn: " + p.guard.ended()}
}

// judge looks at what the process has answered.
func (p *process) judge(s *session, out outcome) *sandbox.Exit {
	switch {
	case out.GetAbort() != nil:
		return sandbox.AbortExit(abi.Code(out.Abort.Code), out.Abort.Message)
	case int64(len(out.GetOutput())) > s.limits.Output:
		return sandbox.OutputExit(s.limits)
	}
	return sandbox.Ending(s.name, abi.Status(out.GetStatus()), out.GetOutput())
}

// describe asks a process what it is.
func (p *process) describe(ctx context.Context) (*abi.Descriptor, error) {
	out, err := p.start(ctx, p.agent.Describe)
	if err != nil {
		return nil, p.unserved(ctx, fmt.Errorf("describe: %w", err))
	}
	if exit := started("Describe", out); exit != nil {
		return nil, exit
	}
	return abi.ParseDescriptor(out.Output)
}

// warm lets a process get ready. One that has nothing to do for that is ready.
func (p *process) warm(ctx context.Context) error {
	out, err := p.start(ctx, p.agent.Warm)
	switch {
	case err != nil:
		return p.unserved(ctx, fmt.Errorf("warm: %w", err))
	case abi.Status(out.Status) == abi.StatusNotImplemented && out.Abort == nil:
		return p.fits()
	}
	if exit := started("Warm", out); exit != nil {
		return exit
	}
	return p.fits()
}

// started is why a call before any turn was in vain, nil if it was not.
func started(name string, out *pluginpb.Outcome) *sandbox.Exit {
	switch {
	case out.Abort != nil:
		return sandbox.AbortExit(abi.Code(out.Abort.Code), out.Abort.Message)
	case abi.Status(out.Status) != abi.StatusOK:
		return sandbox.Ending(name, abi.Status(out.Status), out.Output)
	}
	return nil
}
