// Package peer owns a program that speaks the line protocol of package toy with a host, as
// a client and as a server. It is written from the description there and must not know the
// gateway: no code is shared. A test drives it over its standard streams.
//
// Each line that it reads is a [Command]; each that it writes is an [Event].
package peer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
)

// Command is what the test wants.
type Command struct {
	// N is the number of the command in the events about it.
	N int `json:"n"`
	// Do is serve, stop, call, leave, answer or line.
	Do string `json:"do"`
	// Address is where serve listens.
	Address string `json:"address,omitempty"`
	// Method, URL, Token and Body make the request of a call. Leave ends the call Of.
	Method string `json:"method,omitempty"`
	URL    string `json:"url,omitempty"`
	Token  string `json:"token,omitempty"`
	Body   []byte `json:"body,omitempty"`
	// Of is the number of a call, or of a message that came: answer writes Status and Body
	// to it, line a Body to the stream of the message ID.
	Of     int    `json:"of,omitempty"`
	Status int    `json:"status,omitempty"`
	ID     string `json:"id,omitempty"`
}

// Event is what happened.
type Event struct {
	// N is the command's number, 0 for a message that came, which has Came.
	N    int `json:"n,omitempty"`
	Came int `json:"came,omitempty"`
	// Address is where the program listens. Status is the status of a call, and comes
	// before its lines; Line is one line of its response, or the message that came.
	Address string `json:"address,omitempty"`
	Status  int    `json:"status,omitempty"`
	Line    []byte `json:"line,omitempty"`
	// Withdrawn is the id of a message that the host has withdrawn.
	Withdrawn string `json:"withdrawn,omitempty"`
	// End is set in the last event about a call, with why it failed, if it did.
	End   bool   `json:"end,omitempty"`
	Error string `json:"error,omitempty"`
}

const path = "/toy/v1"

// program is the running peer.
type program struct {
	mu     sync.Mutex
	out    *json.Encoder
	server *http.Server
	// calls end calls; came are the messages that wait for their response.
	calls map[int]context.CancelFunc
	came  map[int]chan Command
	last  int
	// streams are the lines of each message, and who waits for more.
	streams map[string][][]byte
	more    *sync.Cond
}

// Main runs the program until its input ends.
func Main(in io.Reader, out io.Writer) {
	p := &program{out: json.NewEncoder(out), calls: map[int]context.CancelFunc{}, came: map[int]chan Command{}, streams: map[string][][]byte{}}
	p.more = sync.NewCond(&p.mu)
	for dec := json.NewDecoder(in); ; {
		var c Command
		if err := dec.Decode(&c); err != nil {
			if err != io.EOF {
				fmt.Fprintln(os.Stderr, "peer:", err)
			}
			return
		}
		p.do(c)
	}
}

func (p *program) emit(e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.out.Encode(e) // the test is gone
}

func (p *program) do(c Command) {
	switch c.Do {
	case "serve":
		p.serve(c)
	case "stop":
		_ = p.server.Close()
		p.emit(Event{N: c.N, End: true})
	case "call":
		ctx, leave := context.WithCancel(context.Background())
		p.mu.Lock()
		p.calls[c.N] = leave
		p.mu.Unlock()
		go p.call(ctx, c)
	case "leave":
		p.mu.Lock()
		defer p.mu.Unlock()
		if leave := p.calls[c.Of]; leave != nil {
			leave()
		}
	case "answer":
		p.mu.Lock()
		defer p.mu.Unlock()
		p.came[c.Of] <- c
	case "line":
		p.mu.Lock()
		defer p.mu.Unlock()
		p.streams[c.ID] = append(p.streams[c.ID], c.Body)
		p.more.Broadcast()
	}
}

// call makes a request and tells each line of its response.
func (p *program) call(ctx context.Context, c Command) {
	end := Event{N: c.N, End: true}
	defer func() { p.emit(end) }()
	r, err := http.NewRequestWithContext(ctx, c.Method, c.URL, bytes.NewReader(c.Body))
	if err != nil {
		end.Error = err.Error()
		return
	}
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	rsp, err := http.DefaultClient.Do(r)
	if err != nil {
		end.Error = err.Error()
		return
	}
	defer rsp.Body.Close()
	end.Status = rsp.StatusCode
	p.emit(Event{N: c.N, Status: rsp.StatusCode})
	for lines := bufio.NewReader(rsp.Body); ; {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			p.emit(Event{N: c.N, Status: rsp.StatusCode, Line: line})
		}
		if err != nil {
			if err != io.EOF {
				end.Error = err.Error()
			}
			return
		}
	}
}

func (p *program) serve(c Command) {
	l, err := net.Listen("tcp", c.Address)
	if err != nil {
		p.emit(Event{N: c.N, End: true, Error: err.Error()})
		return
	}
	routes := http.NewServeMux()
	routes.HandleFunc("POST "+path, p.takeMessage)
	routes.HandleFunc("GET "+path+"/{id}/lines", p.stream)
	routes.HandleFunc("DELETE "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) {
		p.emit(Event{Withdrawn: r.PathValue("id")})
		_, _ = fmt.Fprintf(w, "{\"id\":%q,\"state\":\"cancelled\"}\n", r.PathValue("id"))
	})
	p.server = &http.Server{Handler: routes}
	go func() { _ = p.server.Serve(l) }()
	p.emit(Event{N: c.N, End: true, Address: l.Addr().String()})
}

// takeMessage shows a message to the test, whose answer is the response.
func (p *program) takeMessage(w http.ResponseWriter, r *http.Request) {
	line, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	answer := make(chan Command, 1)
	p.mu.Lock()
	p.last++
	n := p.last
	p.came[n] = answer
	p.mu.Unlock()
	p.emit(Event{Came: n, Line: line})
	select {
	case a := <-answer:
		w.WriteHeader(a.Status)
		_, _ = w.Write(append(bytes.TrimSpace(a.Body), '\n'))
	case <-r.Context().Done():
	}
}

// stream writes the lines of a message, to the one that is a state.
func (p *program) stream(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	stop := context.AfterFunc(r.Context(), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.more.Broadcast()
	})
	defer stop()
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for n := 0; ; n++ {
		p.mu.Lock()
		for len(p.streams[id]) <= n && r.Context().Err() == nil {
			p.more.Wait()
		}
		if r.Context().Err() != nil {
			p.mu.Unlock()
			return
		}
		line := p.streams[id][n]
		p.mu.Unlock()
		_, _ = w.Write(append(bytes.TrimSpace(line), '\n'))
		_ = http.NewResponseController(w).Flush()
		if strings.Contains(string(line), `"state"`) {
			return
		}
	}
}
