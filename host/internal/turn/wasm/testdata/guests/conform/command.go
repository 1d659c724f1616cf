package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	skep "skep/sdk/go"
)

// run does one command. Its error ends the turn.
func (c *conform) run(t *skep.Turn, cmd command) (string, error) {
	a := cmd.args
	switch cmd.name {
	case "echo":
		return a.Text, nil
	case "look":
		return look(t), nil
	case "params":
		var v json.RawMessage
		err := t.Params(&v)
		return compact(v), err
	case "state":
		var v json.RawMessage
		err := t.State(&v)
		return compact(v), err
	case "set":
		return "ok", t.SetState(a.Value)
	case "count":
		return fmt.Sprintf("%d %d", c.turns, c.warmed), nil
	case "must":
		var answer json.RawMessage
		err := t.Call(a.Op, request(a), &answer)
		return string(answer), err
	case "fail":
		return "", skep.Errorf(a.Code, "%s", a.Message)
	case "span":
		return c.begin(t, a), nil
	case "end_span":
		return c.end(a), nil
	case "abort":
		abort(int32(a.Code), a.Message)
	}
	return host(t, cmd)
}

// host runs the commands that ask the host for something.
func host(t *skep.Turn, cmd command) (string, error) {
	a := cmd.args
	switch cmd.name {
	case "call":
		var answer json.RawMessage
		err := t.Call(a.Op, request(a), &answer)
		return text(string(answer), err), nil
	case "random":
		return text(t.Random()), nil
	case "wall":
		at, err := t.WallTime()
		return text(at.Format("2006-01-02T15:04:05.000000-07:00"), err), nil
	case "clock":
		return fmt.Sprint(t.Now().UnixNano()), nil
	case "sleep":
		before := t.Now()
		t.Sleep(time.Duration(a.MS) * time.Millisecond)
		return fmt.Sprint(t.Now().Sub(before).Nanoseconds()), nil
	case "log":
		t.LogAt(a.Level, a.Message)
		return "ok", nil
	case "tail":
		return tail(t)
	case "history":
		return history(t, a), nil
	case "input":
		return input(a.Page), nil
	case "short":
		return short(a), nil
	case "submit":
		return submit(a), nil
	case "race":
		return race(a), nil
	case "stream":
		return stream(a), nil
	case "drop":
		handle := start(a.Op, a.Request)
		return fmt.Sprint(rawClose(handle), " ", rawRead(handle, 0, 0)), nil
	case "wait":
		return waitResults(), nil
	case "pointer":
		return pointer(), nil
	}
	return asks(t, cmd), nil
}

// asks runs the commands that ask actions and models, and those that show something.
func asks(t *skep.Turn, cmd command) string {
	a := cmd.args
	switch cmd.name {
	case "action":
		var answer json.RawMessage
		err := t.Action(a.Name, a.Args, &answer)
		return text(compact(answer), err)
	case "chat":
		return chat(t, cmd.raw)
	case "chat_stream":
		return chatStream(t, cmd.raw)
	case "emit_progress":
		fraction := -1.0
		if a.Fraction != nil {
			fraction = *a.Fraction
		}
		return emitted(t.EmitProgress(a.Text, fraction))
	case "emit_chunk":
		return emitted(t.EmitChunk(a.Text))
	case "emit_note":
		return emitted(t.EmitNote(a.Text))
	}
	return keeps(t, cmd)
}

// mail runs the commands that are MAIL's tools.
func mail(t *skep.Turn, cmd command) string {
	a := cmd.args
	switch cmd.name {
	case "send_request":
		return said(t.SendRequest(a.Target, a.Subject, a.Body))
	case "ask":
		id, err := t.Ask(a.Target, a.Subject, a.Body)
		if id == "" {
			id = "-"
		}
		return text(id, err)
	case "send_response":
		return said(t.SendResponse(a.Target, a.Subject, a.Body))
	case "send_interrupt":
		return said(t.SendInterrupt(a.Target, a.Subject, a.Body))
	case "send_broadcast":
		return said(t.SendBroadcast(a.Targets, a.Subject, a.Body))
	case "acknowledge_broadcast":
		return said(t.AcknowledgeBroadcast(a.Note))
	case "ignore_broadcast":
		return said(t.IgnoreBroadcast(a.Reason))
	case "await_message":
		return said(t.AwaitMessage(a.Reason))
	case "task_complete":
		return said(t.TaskComplete(a.Finish))
	case "help":
		return text(t.Help(skep.HelpTopics{Summary: true, Tools: []string{"help"}}))
	case "tool":
		reply, err := t.Tool(a.Name, json.RawMessage(compact(a.Args)))
		if reply.ID == "" {
			reply.ID = "-"
		}
		return text(reply.ID+" "+reply.Text, err)
	}
	return "ERROR UNSUPPORTED " + cmd.name + " - 0: no such command"
}

// request is the request of call and must: nothing when it is left out.
func request(a args) []byte {
	if a.Request == nil {
		return []byte{}
	}
	return []byte(compact(a.Request))
}

// compact is a value's text without space between its tokens.
func compact(v json.RawMessage) string {
	if v == nil {
		return "null"
	}
	var b bytes.Buffer
	if err := json.Compact(&b, v); err != nil {
		return err.Error()
	}
	return b.String()
}
