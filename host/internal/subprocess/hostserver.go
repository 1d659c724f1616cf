package subprocess

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"skep/abi"
	"skep/abi/pluginpb"
	"skep/host/internal/sandbox"
)

// maxRead bounds one piece of an answer, and maxMessage what comes in at once.
const (
	maxRead    = 1 << 20
	maxMessage = sandbox.MaxRequest + 64<<10
)

// desk is what one process calls: the sessions of its turns.
type desk struct {
	pluginpb.UnimplementedHostServer

	mu       sync.Mutex
	sessions map[string]*session
}

func newDesk() *desk { return &desk{sessions: map[string]*session{}} }

// server makes the server that the process dials.
func (d *desk) server(config *tls.Config) *grpc.Server {
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)), grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxCalls), grpc.MaxHeaderListSize(maxHeader), grpc.ConnectionTimeout(startPatience))
	pluginpb.RegisterHostServer(s, d)
	return s
}

func (d *desk) enter(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions[s.token] = s
}

// leave ends a session. Nothing of it is left afterwards.
func (d *desk) leave(s *session) {
	d.mu.Lock()
	delete(d.sessions, s.token)
	d.mu.Unlock()
	s.end()
}

// within does something for a session, if its turn runs. It is the fence for what
// panics in an op.
func (d *desk) within(token string, do func(s *session)) (err error) {
	d.mu.Lock()
	s := d.sessions[token]
	d.mu.Unlock()
	if s == nil {
		return errNoSession()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return errNoSession()
	}
	defer func() {
		if v := recover(); v != nil {
			s.over, s.panic = true, fmt.Sprint(v)
			close(s.broken)
			err = status.Error(codes.Internal, "the host has failed")
		}
	}()
	do(s)
	return nil
}

func errNoSession() error {
	return status.Error(codes.PermissionDenied, "no turn runs under this session")
}

// told is an error as it crosses.
func told(err *abi.Error) (code int32, body []byte) {
	if err == nil {
		return 0, nil
	}
	return int32(err.Code), sandbox.ErrorBody(err)
}

// response is a body, or an error in its place.
func response(s *session, body []byte, err *abi.Error) *pluginpb.OpResponse {
	rsp := &pluginpb.OpResponse{Body: body, Clock: s.clock()}
	if err != nil {
		rsp.Code, rsp.Body = told(err)
	}
	return rsp
}

// Call implements the service.
func (d *desk) Call(_ context.Context, req *pluginpb.OpRequest) (rsp *pluginpb.OpResponse, err error) {
	err = d.within(req.Session, func(s *session) {
		body, fault := s.call(abi.Op(req.Op), req.Request)
		rsp = response(s, body, fault)
	})
	return rsp, err
}

// Submit implements the service.
func (d *desk) Submit(_ context.Context, req *pluginpb.OpRequest) (rsp *pluginpb.HandleResponse, err error) {
	err = d.within(req.Session, func(s *session) {
		number, fault := s.submit(abi.Op(req.Op), req.Request)
		rsp = &pluginpb.HandleResponse{Handle: number, Clock: s.clock()}
		rsp.Code, rsp.Error = told(fault)
	})
	return rsp, err
}

// Wait implements the service.
func (d *desk) Wait(_ context.Context, req *pluginpb.WaitRequest) (rsp *pluginpb.WaitResponse, err error) {
	err = d.within(req.Session, func(s *session) {
		index, fault := s.wait(req.Handles, time.Duration(req.TimeoutMs)*time.Millisecond)
		rsp = &pluginpb.WaitResponse{Index: int32(index), Clock: s.clock()}
		rsp.Code, rsp.Error = told(fault)
	})
	return rsp, err
}

// Read implements the service.
func (d *desk) Read(_ context.Context, req *pluginpb.ReadRequest) (rsp *pluginpb.OpResponse, err error) {
	err = d.within(req.Session, func(s *session) {
		body, fault := s.read(req.Handle, req.Size)
		rsp = response(s, body, fault)
	})
	return rsp, err
}

// Close implements the service.
func (d *desk) Close(_ context.Context, req *pluginpb.CloseRequest) (rsp *pluginpb.CloseResponse, err error) {
	err = d.within(req.Session, func(s *session) {
		rsp = &pluginpb.CloseResponse{}
		rsp.Code, rsp.Error = told(s.close(req.Handle))
	})
	return rsp, err
}

// Sleep implements the service. A sleep that is cut short moves the clock all the
// same.
func (d *desk) Sleep(_ context.Context, req *pluginpb.SleepRequest) (rsp *pluginpb.SleepResponse, err error) {
	err = d.within(req.Session, func(s *session) {
		if s.turn.Clock != nil && s.turn.Clock.Sleep(s.ctx, time.Duration(req.Nanoseconds)) != nil {
			s.log.Debug("a sleep of a subprocess was cut short")
		}
		rsp = &pluginpb.SleepResponse{Clock: s.clock()}
	})
	return rsp, err
}
