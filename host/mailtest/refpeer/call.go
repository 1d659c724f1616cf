package refpeer

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// callTime bounds a call.
const callTime = time.Minute

// call makes one over a connection of its own.
func (p *Peer) call(peer remote, path, body string) (status int, err error) {
	request := p.text(peer, path, body)
	sent, err := http.ReadRequest(bufio.NewReader(strings.NewReader(request)))
	if err != nil {
		return 0, err
	}
	at := p.note(Exchange{Out: true, Path: path, Header: sent.Header, Body: []byte(body)})
	rsp, raw, err := exchange(peer.base, request)
	if err != nil {
		p.answered(at, -1, nil)
		return 0, err
	}
	p.answered(at, rsp.StatusCode, raw)
	return rsp.StatusCode, nil
}

func exchange(base, request string) (*http.Response, []byte, error) {
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(base, "http://"), callTime)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(callTime)); err != nil {
		return nil, nil, err
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return nil, nil, err
	}
	rsp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, nil, err
	}
	defer rsp.Body.Close()
	raw, err := io.ReadAll(rsp.Body)
	return rsp, raw, err
}

// Register makes another swarm known by what it says of itself at its base URL,
// which must be its root. An answer that lacks what is read is a failure, and then
// nothing is registered.
func (p *Peer) Register(name, base, token string) error {
	host := strings.TrimPrefix(base, "http://")
	rsp, raw, err := exchange(base, "GET / HTTP/1.1\r\nHost: "+host+"\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\nUser-Agent: Python/3.12 aiohttp/3.12\r\n\r\n")
	if err != nil {
		return err
	}
	var said struct {
		Version *string `json:"protocol_version"`
		Swarm   *struct {
			Name, Description, Entrypoint *string
			Keywords                      *[]string
			Public                        *bool
		}
	}
	if rsp.StatusCode != http.StatusOK {
		return fmt.Errorf("error registering swarm: status %d", rsp.StatusCode)
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return err
	}
	s := said.Swarm
	if said.Version == nil || s == nil || s.Name == nil || s.Description == nil || s.Entrypoint == nil || s.Keywords == nil || s.Public == nil {
		return errors.New("error registering swarm: the answer lacks what is read of it: " + string(raw))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remotes[name] = remote{base, token}
	return nil
}
