package cli

// style colours text, or does not.
type style struct{ on bool }

func (a *app) noteStyle() style { return a.style(a.env.StderrTerminal) }

func (a *app) dataStyle() style { return a.style(a.env.StdoutTerminal) }

// style honours NO_COLOR and terminals that cannot.
func (a *app) style(terminal bool) style {
	return style{terminal && a.env.get("NO_COLOR") == "" && a.env.get("TERM") != "dumb"}
}

func (s style) paint(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(text string) string    { return s.paint("1", text) }
func (s style) dim(text string) string     { return s.paint("2", text) }
func (s style) red(text string) string     { return s.paint("31", text) }
func (s style) green(text string) string   { return s.paint("32", text) }
func (s style) yellow(text string) string  { return s.paint("33", text) }
func (s style) blue(text string) string    { return s.paint("34", text) }
func (s style) magenta(text string) string { return s.paint("35", text) }
func (s style) cyan(text string) string    { return s.paint("36", text) }
