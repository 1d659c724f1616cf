package uamp

import (
	"context"
	"io"
	"net/http"

	"github.com/coder/websocket"
)

// webPartner is a WebSocket to a partner.
type webPartner struct{ webFrames }

// dialWebSocket opens a WebSocket.
func dialWebSocket(s *socket, key socketKey) (partnerConn, error) {
	timed, cancel := context.WithTimeout(s.ctx, socketDial)
	defer cancel()
	conn, rsp, err := websocket.Dial(timed, key.url, &websocket.DialOptions{HTTPClient: key.client, Subprotocols: []string{subprotocol}})
	if err != nil && rsp != nil && rsp.StatusCode >= http.StatusMultipleChoices {
		text, _ := io.ReadAll(rsp.Body) // what there is of it
		return nil, unsignedRefusal(rsp, text)
	}
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(-1) // ReadSocket takes the limit
	s.conn = conn
	return webPartner{webFrames{conn}}, nil
}

func (w webPartner) run(s *socket) {
	s.running.Go(s.watch)
	s.read()
}

func (w webPartner) leave() { _ = w.conn.Close(websocket.StatusNormalClosure, "") }
func (w webPartner) drop()  { _ = w.conn.CloseNow() }
