/* Progressive enhancement of queries and charts: completion in the box, a range drawn over a chart,
 * and loading again by itself. Every page works without this file. No markup is ever built from
 * data: text is set with textContent alone.
 */
"use strict";

(() => {
  const doc = document;

  /* Completion: the ARIA combobox pattern; the server knows keys, values and who may ask them. */
  const complete = (input, number) => {
    const list = doc.createElement("ul");
    list.className = "proposals";
    list.id = `proposals-${number}`;
    list.hidden = true;
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Proposals");
    input.parentElement.classList.add("completed");
    input.after(list);
    for (const [name, value] of Object.entries({
      role: "combobox", "aria-expanded": "false", "aria-autocomplete": "list", "aria-controls": list.id,
    })) input.setAttribute(name, value);

    let span = { from: 0, to: 0 };
    let chosen = -1;
    let waiting = 0;
    let asked = null;

    const close = () => {
      clearTimeout(waiting);
      asked?.abort();
      list.hidden = true;
      list.replaceChildren();
      chosen = -1;
      input.setAttribute("aria-expanded", "false");
      input.removeAttribute("aria-activedescendant");
    };
    const mark = (index) => {
      chosen = index;
      [...list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === index)));
      const item = list.children[index];
      if (!item) return;
      input.setAttribute("aria-activedescendant", item.id);
      item.scrollIntoView({ block: "nearest" });
    };
    const take = (text) => {
      const end = text.endsWith(":") ? "" : " ";
      input.setRangeText(text + end, span.from, span.to, "end");
      close();
      input.focus();
      if (!end) ask();
    };
    const show = (answer) => {
      span = answer;
      list.replaceChildren(...answer.items.map((item, at) => {
        const line = doc.createElement("li");
        line.id = `${list.id}-${at}`;
        line.setAttribute("role", "option");
        line.setAttribute("aria-selected", "false");
        const text = doc.createElement("span");
        text.className = "code";
        text.textContent = item.text;
        const hint = doc.createElement("span");
        hint.className = "hint";
        hint.textContent = item.hint;
        line.append(text, hint);
        /* mousedown: the box keeps the focus. */
        line.addEventListener("mousedown", (event) => { event.preventDefault(); take(item.text); });
        return line;
      }));
      chosen = -1;
      list.hidden = !answer.items.length;
      input.setAttribute("aria-expanded", String(!list.hidden));
    };
    const ask = () => {
      clearTimeout(waiting);
      waiting = setTimeout(async () => {
        asked?.abort();
        asked = new AbortController();
        const here = new URLSearchParams(location.search);
        const question = new URLSearchParams({ text: input.value, at: String(input.selectionStart) });
        for (const name of ["project", "window"]) if (here.get(name)) question.set(name, here.get(name));
        try {
          const answer = await fetch(`/complete?${question}`, { signal: asked.signal });
          if (answer.ok && doc.activeElement === input) show(await answer.json());
        } catch { /* The next key asks again. */ }
      }, 90);
    };
    input.addEventListener("input", ask);
    input.addEventListener("click", ask);
    input.addEventListener("blur", close);
    input.addEventListener("keydown", (event) => {
      const open = !list.hidden;
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        if (!open) { ask(); return; }
        const step = event.key === "ArrowDown" ? 1 : -1;
        mark((chosen + step + list.children.length) % list.children.length);
      } else if (open && chosen >= 0 && (event.key === "Enter" || event.key === "Tab")) {
        take(list.children[chosen].firstChild.textContent);
      } else if (open && event.key === "Escape") {
        close();
        event.stopPropagation();
      } else return;
      event.preventDefault();
    });
  };
  doc.querySelectorAll("input[data-complete]").forEach(complete);

  /* Brush: press on a chart of time, drag, let go; the range goes into the query. */
  const box = doc.querySelector("form.query input[name=q]");
  for (const chart of box ? doc.querySelectorAll(".chart svg") : []) {
    const slots = [...chart.querySelectorAll(".bar-slot[data-from]")];
    if (!slots.length) continue;
    let first = -1;
    let last = -1;
    let shade = null;
    const slotAt = (event) => slots.findIndex((slot) => {
      const area = slot.getBoundingClientRect();
      return event.clientX >= area.left && event.clientX < area.right;
    });
    const draw = () => {
      const [low, high] = [Math.min(first, last), Math.max(first, last)];
      const left = parseFloat(slots[low].getAttribute("x"));
      const right = parseFloat(slots[high].getAttribute("x")) + parseFloat(slots[high].getAttribute("width"));
      shade.setAttribute("x", `${left}%`);
      shade.setAttribute("width", `${right - left}%`);
    };
    const stop = () => { shade?.remove(); shade = null; first = -1; };
    chart.addEventListener("dragstart", (event) => event.preventDefault());
    chart.addEventListener("pointerdown", (event) => { if (event.button === 0) first = last = slotAt(event); });
    chart.addEventListener("pointermove", (event) => {
      const at = slotAt(event);
      if (first < 0 || at < 0 || (at === first && !shade)) return;
      if (!shade) {
        shade = doc.createElementNS("http://www.w3.org/2000/svg", "rect");
        shade.classList.add("brush");
        for (const name of ["y", "height"]) shade.setAttribute(name, slots[0].getAttribute(name));
        chart.append(shade);
        chart.setPointerCapture(event.pointerId);
      }
      last = at;
      draw();
    });
    chart.addEventListener("pointerup", () => {
      if (!shade) { first = -1; return; }
      const [low, high] = [Math.min(first, last), Math.max(first, last)];
      const rest = box.value.replace(/(^|\s)-?(since|until):\S+/g, "").trim();
      const target = new URL(location.href);
      const range = `since:${slots[low].dataset.from} until:${slots[high].dataset.to}`;
      target.searchParams.set("q", rest ? `${rest} ${range}` : range);
      for (const name of ["window", "cursor"]) target.searchParams.delete(name);
      stop();
      location.assign(target);
    });
    chart.addEventListener("pointercancel", stop);
    doc.addEventListener("keydown", (event) => { if (event.key === "Escape") stop(); });
  }

  /* Loading again by itself, never under the fingers of somebody who types or marks text, and not
   * while another page is on its way: that would bring the reader back to this one. */
  const seconds = Number(doc.body.dataset.refresh);
  if (seconds) {
    let leaving = -Infinity;
    window.addEventListener("beforeunload", () => { leaving = Date.now(); });
    setInterval(() => {
      const typing = doc.activeElement?.closest("input, textarea, select");
      const stays = Date.now() > leaving + 20_000;
      if (stays && !typing && !doc.hidden && getSelection().isCollapsed) location.reload();
    }, seconds * 1000);
  }
})();
