package cli

import "skep/host/internal/turn/process"

// execute is the side of a subprocess: the guard between it and the host, or what
// becomes the program. It is not for people.
func (e Env) execute() int { return process.Exec(e.Args[1:], e.Stderr) }

// subprocess begins the command line of a guard, empty where the path of the program
// is unknown.
func (a *app) subprocess() []string {
	if a.env.Self == "" {
		return nil
	}
	return []string{a.env.Self, process.Command}
}
