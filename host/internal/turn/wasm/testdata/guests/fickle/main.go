// Command fickle is an agent and an action that ask the web for what they are told;
// in its place "PID" stands for the number of their process, so that a process that
// does it again asks for something else.
package main

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"

	skep "skep/sdk/go"
	"skep/sdk/goproc"
)

type fickle struct{}

var agent = skep.Run(skep.Descriptor{
	Name: "fickle", Version: "1.0.0",
	Actions: []skep.ActionInfo{{Name: "ask", Description: "Asks the web.", Parameters: json.RawMessage(`{"type":"object"}`)}},
}, fickle{})

func main() { goproc.Serve(agent) }

func ask(t *skep.Turn, url string) (string, error) {
	rsp, err := t.Fetch(skep.FetchRequest{Method: "GET", URL: strings.Replace(url, "PID", strconv.Itoa(os.Getpid()), 1)})
	return string(rsp.Body), err
}

// Turn asks for what its message says and ends the task with the answer.
func (fickle) Turn(t *skep.Turn) error {
	answer, err := ask(t, t.Message.Body)
	if err != nil {
		return err
	}
	return t.TaskComplete(answer)
}

// Action asks for its argument url.
func (fickle) Action(c *skep.ActionCall) (any, error) {
	var args struct{ URL string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return nil, err
	}
	return ask(c.Host(), args.URL)
}
