package main

import "strconv"

// listedTasks is how many tasks of the caller a list has.
const listedTasks = 20

// listTarget is ten times the 294 lists a second, beside 40,243 answers of GET /status, of a host
// that had no pages.
const listTarget = 10 * 294.0 / 40_243

// listing measures the lists of a caller's tasks, with and without their logs.
func (b *bench) listing() {
	on := must(startHost(b.ctx, benchSwarm))
	defer on.stop()
	cl := clientOf(1)
	defer cl.CloseIdleConnections()
	for i := range listedTasks {
		check(message(on.url, `{"body":"hello","subject":"q","task_id":"listed-`+strconv.Itoa(i)+`"}`).expect(cl, trivialAnswer))
	}
	read := func(path, want string) subject {
		return requesting(func() httpRequest { return getFrom(on.url + path).as(benchKey) }, 16, want)
	}
	rates := must(b.rates(read("/tasks", "listed-19"), read("/skep/v1/tasks", "listed-19"), read("/status", "")))
	b.report.compare("GET /tasks, 20 tasks with their logs, 16 clients", rates[0], rate, "GET /status", rates[2], none())
	b.report.compare("GET /skep/v1/tasks, a page of 20 tasks, 16 clients", rates[1], rate, "GET /status", rates[2], atLeast(listTarget))
}
