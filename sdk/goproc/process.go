//go:build !wasip1

package goproc

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	skep "skep/sdk/go"
	"skep/sdk/goproc/internal/pluginpb"
)

// process is the host as one call of the agent reaches it.
type process struct {
	host    pluginpb.HostClient
	session string
	input   []byte
	output  []byte
	clock   int64
	last    []byte // the body of the last error
}

var _ skep.Process = (*process)(nil)

// Input returns the whole input.
func (p *process) Input() []byte { return p.input }

// Output appends to the output. The host looks at its size.
func (p *process) Output(data []byte) skep.Code {
	p.output = append(p.output, data...)
	return 0
}

// Call runs an op.
func (p *process) Call(op skep.Op, req []byte) ([]byte, skep.Code) {
	rsp, err := p.host.Call(context.Background(), &pluginpb.OpRequest{Session: p.session, Op: int32(op), Request: req}, large)
	if err != nil {
		return p.lost(err)
	}
	p.clock = rsp.Clock
	if rsp.Code != 0 {
		p.last = rsp.Body
	}
	return rsp.Body, skep.Code(rsp.Code)
}

// large lets an answer through that the host lets through.
var large = grpc.MaxCallRecvMsgSize(math.MaxInt32)

// lost stands for an answer that did not come: the turn is over, or the host gone.
func (p *process) lost(err error) ([]byte, skep.Code) {
	code := skep.Unavailable
	if status.Code(err) == codes.PermissionDenied {
		code = skep.Cancelled
	}
	body, _ := json.Marshal(map[string]string{"code": code.String(), "op": "host", "message": err.Error()}) // texts encode
	p.last = body
	return body, code
}

// told keeps an error and gives minus its code; 0 where there is none.
func (p *process) told(code int32, body []byte) int64 {
	if code != 0 {
		p.last = body
	}
	return -int64(code)
}

func (p *process) missed(err error) int64 {
	_, code := p.lost(err)
	return -int64(code)
}

// Submit starts an op.
func (p *process) Submit(op skep.Op, req []byte) int64 {
	rsp, err := p.host.Submit(context.Background(), &pluginpb.OpRequest{Session: p.session, Op: int32(op), Request: req})
	if err != nil {
		return p.missed(err)
	}
	p.clock = rsp.Clock
	if rsp.Code != 0 {
		return p.told(rsp.Code, rsp.Error)
	}
	return int64(rsp.Handle)
}

// Wait waits for the first of several handles.
func (p *process) Wait(handles []int32, timeoutMS int32) int32 {
	rsp, err := p.host.Wait(context.Background(), &pluginpb.WaitRequest{Session: p.session, Handles: handles, TimeoutMs: timeoutMS})
	if err != nil {
		return int32(p.missed(err))
	}
	p.clock = rsp.Clock
	if rsp.Code != 0 {
		return int32(p.told(rsp.Code, rsp.Error))
	}
	return rsp.Index
}

// Read reads on.
func (p *process) Read(handle int32, to []byte) int64 {
	rsp, err := p.host.Read(context.Background(), &pluginpb.ReadRequest{Session: p.session, Handle: handle, Size: uint32(min(len(to), math.MaxUint32))})
	if err != nil {
		return p.missed(err)
	}
	p.clock = rsp.Clock
	if rsp.Code != 0 {
		return p.told(rsp.Code, rsp.Body)
	}
	return int64(copy(to, rsp.Body))
}

// Close forgets a handle.
func (p *process) Close(handle int32) int32 {
	rsp, err := p.host.Close(context.Background(), &pluginpb.CloseRequest{Session: p.session, Handle: handle})
	if err != nil {
		return int32(p.missed(err))
	}
	return int32(p.told(rsp.Code, rsp.Error))
}

// LastError is the body of the last error.
func (p *process) LastError() []byte { return p.last }

// Now reads the turn's clock, which moves with the host's answers.
func (p *process) Now() time.Time { return time.Unix(0, p.clock) }

// Sleep moves it.
func (p *process) Sleep(d time.Duration) {
	rsp, err := p.host.Sleep(context.Background(), &pluginpb.SleepRequest{Session: p.session, Nanoseconds: int64(d)})
	if err != nil {
		p.missed(err)
		return
	}
	p.clock = rsp.Clock
}
