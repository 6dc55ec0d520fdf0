/* Progressive enhancement only: every page works without this file.
 *
 * What it adds: copy buttons, keys (`?` lists them), telling the server the reader's time zone,
 * rows that lead somewhere, closing menus, live rows and the first run. No markup is ever built
 * from data: text is set with textContent alone.
 */
"use strict";

(() => {
  const doc = document;

  /* Copy buttons: <button data-copy="id of the element to copy" hidden>. */
  for (const button of doc.querySelectorAll("[data-copy]")) {
    const source = doc.getElementById(button.dataset.copy);
    if (!source || !navigator.clipboard) continue;
    button.hidden = false;
    // What is copied, for those who hear the page, stands behind the word and stays.
    const word = button.firstChild;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(source.value ?? source.textContent);
        word.data = "Copied";
        button.dataset.copied = "";
      } catch {
        word.data = "Press Ctrl+C";
        getSelection().selectAllChildren(source);
      }
      setTimeout(() => { word.data = "Copy"; }, 1500);
    });
  }

  /* The server writes times in the reader's zone; the browser alone knows it. It is looked up when
   * nothing else is to be done, since the first look costs some milliseconds, and from the sign-in
   * page on, so that no page has to be written again. */
  const tell = () => {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (zone && !doc.cookie.split("; ").includes(`zone=${zone}`)) {
      doc.cookie = `zone=${zone}; path=/; max-age=31536000; samesite=lax`;
    }
  };
  if (window.requestIdleCallback) requestIdleCallback(tell); else setTimeout(tell, 500);

  /* The first-run page turns into the overview when the first event has arrived. */
  const waiting = doc.querySelector("[data-await]");
  const look = async () => {
    try {
      const answer = await fetch(waiting.dataset.await, { redirect: "manual" });
      if (answer.ok && !(await answer.text()).includes("data-await")) {
        // A key is shown this once: who may not have taken it yet is told, and stays.
        const key = doc.getElementById("dsn")?.textContent.match(/\/\/(.*)@/)[1];
        const copied = [...doc.querySelectorAll("[data-copied]")];
        const holds = (button) => doc.getElementById(button.dataset.copy).textContent.includes(key);
        if (!key || copied.some(holds)) location.assign(waiting.dataset.await);
        else doc.getElementById("arrived").hidden = false;
        return;
      }
    } catch { /* The server is away for a moment: look again. */ }
    setTimeout(look, 3000);
  };
  if (waiting) setTimeout(look, 3000);

  /* A page that is still being counted goes on at once, after it has been drawn: never under the
   * fingers of somebody who types, and never in the way of somebody who is already leaving. */
  if (doc.querySelector("[data-again]")) {
    const again = () => {
      const typing = doc.activeElement?.closest("input, textarea, select");
      if (typing) timer = setTimeout(again, 1000); else location.reload();
    };
    let timer = setTimeout(again, 100);
    window.addEventListener("beforeunload", () => clearTimeout(timer));
  }

  /* What is laid out later is laid out card by card, when there is nothing else to do. */
  const later = [...doc.querySelectorAll(".later")];
  const lay = () => {
    later.shift()?.classList.remove("later");
    if (later.length) idle(lay);
  };
  const idle = window.requestIdleCallback || ((then) => setTimeout(then, 50));
  if (later.length) idle(lay);

  /* A row of these tables leads where its first link leads. What has a use of its own keeps it, and
   * text can be selected by dragging. */
  doc.addEventListener("click", (event) => {
    const link = event.target.closest("[data-rows] tbody tr")?.querySelector("a.row-link");
    if (!link || event.target.closest("a, button, summary, pre, input, label") || String(getSelection())) return;
    link.dispatchEvent(new MouseEvent("click", event)); // with Ctrl and Shift as they were
  });

  /* An open export menu closes when a format is chosen, on a click elsewhere, and on Escape. */
  const closeExport = () => {
    const menu = doc.querySelector(".export[open]");
    if (menu) menu.open = false;
    return menu;
  };
  doc.addEventListener("click", ({ target }) => {
    if (!target.closest(".export[open]") || target.closest(".export a")) closeExport();
  });

  /* Live: rows are built from text alone, newest on top, and the oldest fall off. */
  const live = doc.getElementById("live");
  if (live && window.EventSource) {
    const state = doc.getElementById("live-state");
    const pause = doc.getElementById("live-pause");
    const body = live.querySelector("tbody");
    const element = (name, text, className) => {
      const made = doc.createElement(name);
      made.textContent = text;
      if (className) made.className = className;
      return made;
    };
    const add = (failure) => {
      const row = doc.createElement("tr");
      const head = doc.createElement("th");
      head.scope = "row";
      const link = element("a", failure.code, "code row-link");
      link.href = failure.href;
      const under = element("span", "", "under");
      under.append(element("span", failure.tool, "code"));
      if (failure.field) under.append(" · ", element("span", failure.field, "code"));
      else if (failure.issues) under.append(element("span", ` · ${failure.issues}`, "muted"));
      const badge = element("span", failure.audience, "badge");
      badge.title = failure.audience_meaning;
      head.append(link, " ", badge, under);
      const said = doc.createElement("td");
      said.append(element("span", failure.text, "clip"));
      const when = doc.createElement("td");
      when.className = "nowrap";
      const time = element("time", failure.when);
      if (failure.at) { time.dateTime = failure.at; time.title = failure.at; }
      when.append(time);
      row.append(head, said, when);
      row.classList.add("row-new");
      body.prepend(row);
      while (body.rows.length > Number(live.dataset.most)) body.deleteRow(-1);
      doc.getElementById("live-empty")?.remove();
    };
    let source = null;
    const run = () => {
      source = new EventSource(live.dataset.events);
      source.addEventListener("ready", () => { state.textContent = "live"; });
      source.addEventListener("failure", (event) => add(JSON.parse(event.data)));
      source.addEventListener("error", () => { state.textContent = "connecting"; });
      pause.textContent = "Pause";
    };
    pause.hidden = false;
    pause.addEventListener("click", () => {
      if (!source) { run(); return; }
      source.close();
      source = null;
      state.textContent = "paused";
      pause.textContent = "Go on";
    });
    window.addEventListener("pagehide", () => source?.close());
    run();
  }

  /* Keys. */
  const keys = doc.getElementById("keys");
  const follow = (selector) => {
    const link = doc.querySelector(selector);
    if (link) link.click();
    return Boolean(link);
  };
  let leader = false;
  doc.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (typing && typing.type !== "checkbox") {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    let done = false;
    if (event.key === "Escape") closeExport()?.firstElementChild.focus();
    else if (leader) {
      leader = false;
      done = /^[a-z]$/.test(event.key) && follow(`.nav a[data-key="${event.key}"]`);
    } else if (event.key === "/") {
      const box = doc.querySelector("input[name=q]");
      if (box) { box.focus(); box.select(); done = true; }
    } else if (event.key === "[") done = follow('a[rel="prev"]');
    else if (event.key === "]") done = follow('a[rel="next"]');
    else if (event.key === "j" || event.key === "k") done = step(event.key === "j" ? 1 : -1);
    else if (/^[1-9]$/.test(event.key)) done = jump(Number(event.key));
    else if (event.key === "g") { leader = true; setTimeout(() => { leader = false; }, 1500); }
    else if (event.key === "x") done = choose(rowHere());
    else if (press(event.key)) done = true;
    else if (event.key === "?" && keys) { keys.showModal(); done = true; }
    if (done) event.preventDefault();
  });

  /* j and k walk through the rows of a list: the first link of each row is its target. */
  const step = (by) => {
    const links = [...doc.querySelectorAll("tbody tr a.row-link")];
    if (!links.length) return false;
    const at = links.indexOf(doc.activeElement);
    const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by;
    links[Math.min(links.length - 1, Math.max(0, next))].focus();
    return true;
  };

  /* Rows that can be chosen: x chooses the row of the focus, and the letter of a button of the form
   * presses it, for that row where none is chosen. */
  const rowHere = () => doc.activeElement?.closest("tbody tr");
  const choose = (row) => {
    const box = row?.querySelector(".choose input");
    if (box) box.checked = !box.checked;
    return Boolean(box);
  };
  const press = (key) => {
    const button = doc.querySelector(`[data-press="${CSS.escape(key)}"]`);
    if (!button) return false;
    if (!doc.querySelector(".choose input:checked") && !choose(rowHere())) return false;
    button.click();
    return true;
  };
  for (const hint of doc.querySelectorAll("[data-keys-hint]")) hint.hidden = false;

  /* 1 to 9 go to a part of the page: its headings, in order. */
  const jump = (number) => {
    const heading = doc.querySelectorAll("main h2")[number - 1];
    if (!heading) return false;
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    heading.scrollIntoView({ block: "start" });
    return true;
  };

  /* The button that shows the keys exists only where it works. */
  for (const button of doc.querySelectorAll("[data-keys]")) {
    button.hidden = false;
    button.addEventListener("click", () => keys.showModal());
  }
})();
