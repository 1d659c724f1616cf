package process

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
	"skep/host/internal/turn"
)

// maxRead bounds one piece of an answer, maxMessage one incoming message; both in bytes.
const (
	maxRead    = 1 << 20
	maxMessage = turn.MaxRequest + 64<<10
)

// hostService serves the ops of one process, for the sessions of its turns.
type hostService struct {
	pluginpb.UnimplementedHostServer

	mu       sync.Mutex
	sessions map[string]*session
}

func newHostService() *hostService { return &hostService{sessions: map[string]*session{}} }

// server returns the gRPC server that the process dials.
func (d *hostService) server(config *tls.Config) *grpc.Server {
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)), grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxCalls), grpc.MaxHeaderListSize(maxHeader), grpc.ConnectionTimeout(startTimeout))
	pluginpb.RegisterHostServer(s, d)
	return s
}

func (d *hostService) addSession(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions[s.token] = s
}

// removeSession ends a session and waits until nothing of it runs.
func (d *hostService) removeSession(s *session) {
	d.mu.Lock()
	delete(d.sessions, s.token)
	d.mu.Unlock()
	s.end()
}

// withSession calls do with the session of a running turn. It recovers from panics in an
// op.
func (d *hostService) withSession(token string, do func(s *session)) (err error) {
	d.mu.Lock()
	s := d.sessions[token]
	d.mu.Unlock()
	if s == nil {
		return errNoSession()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errNoSession()
	}
	defer func() {
		if v := recover(); v != nil {
			s.ended, s.panicText = true, fmt.Sprint(v)
			close(s.panicked)
			err = status.Error(codes.Internal, "the host has failed")
		}
	}()
	do(s)
	return nil
}

func errNoSession() error {
	return status.Error(codes.PermissionDenied, "no turn runs under this session")
}

// encodeError encodes an error for the process.
func encodeError(err *abi.Error) (code int32, body []byte) {
	if err == nil {
		return 0, nil
	}
	return int32(err.Code), turn.EncodeError(err)
}

// response returns a body or, in its place, an error.
func response(s *session, body []byte, err *abi.Error) *pluginpb.OpResponse {
	rsp := &pluginpb.OpResponse{Body: body, Clock: s.clock()}
	if err != nil {
		rsp.Code, rsp.Body = encodeError(err)
	}
	return rsp
}

// Call implements the service.
func (d *hostService) Call(_ context.Context, req *pluginpb.OpRequest) (rsp *pluginpb.OpResponse, err error) {
	err = d.withSession(req.Session, func(s *session) {
		body, fault := s.call(abi.Op(req.Op), req.Request)
		rsp = response(s, body, fault)
	})
	return rsp, err
}

// Submit implements the service.
func (d *hostService) Submit(_ context.Context, req *pluginpb.OpRequest) (rsp *pluginpb.HandleResponse, err error) {
	err = d.withSession(req.Session, func(s *session) {
		number, fault := s.submit(abi.Op(req.Op), req.Request)
		rsp = &pluginpb.HandleResponse{Handle: number, Clock: s.clock()}
		rsp.Code, rsp.Error = encodeError(fault)
	})
	return rsp, err
}

// Wait implements the service.
func (d *hostService) Wait(_ context.Context, req *pluginpb.WaitRequest) (rsp *pluginpb.WaitResponse, err error) {
	err = d.withSession(req.Session, func(s *session) {
		index, fault := s.wait(req.Handles, time.Duration(req.TimeoutMs)*time.Millisecond)
		rsp = &pluginpb.WaitResponse{Index: int32(index), Clock: s.clock()}
		rsp.Code, rsp.Error = encodeError(fault)
	})
	return rsp, err
}

// Read implements the service.
func (d *hostService) Read(_ context.Context, req *pluginpb.ReadRequest) (rsp *pluginpb.OpResponse, err error) {
	err = d.withSession(req.Session, func(s *session) {
		body, fault := s.read(req.Handle, req.Size)
		rsp = response(s, body, fault)
	})
	return rsp, err
}

// Close implements the service.
func (d *hostService) Close(_ context.Context, req *pluginpb.CloseRequest) (rsp *pluginpb.CloseResponse, err error) {
	err = d.withSession(req.Session, func(s *session) {
		rsp = &pluginpb.CloseResponse{}
		rsp.Code, rsp.Error = encodeError(s.closeHandle(req.Handle))
	})
	return rsp, err
}

// Sleep implements the service. An interrupted sleep also moves the clock.
func (d *hostService) Sleep(_ context.Context, req *pluginpb.SleepRequest) (rsp *pluginpb.SleepResponse, err error) {
	err = d.withSession(req.Session, func(s *session) {
		if s.turn.Clock != nil && s.turn.Clock.Sleep(s.ctx, time.Duration(req.Nanoseconds)) != nil {
			s.log.Debug("a sleep of a subprocess was cut short")
		}
		rsp = &pluginpb.SleepResponse{Clock: s.clock()}
	})
	return rsp, err
}
