// Tables that sort, filter and copy; one player at a time; search without a server.
// No dependency and no request: works from a folder, with either renderer.
(() => {
  "use strict";
  const NUMBER = /^[-+−]?[\d,]*\.?\d+(?:e[-+]?\d+)?/i;

  // "1,204", "12/40 (30.0 %)" and "0.5 to 0.9" sort by their first number; a dash goes last.
  const key = (text) => {
    const found = text.trim().replace("−", "-").match(NUMBER);
    return found ? Number(found[0].replace(/,/g, "")) : null;
  };
  const order = (a, b) => {
    const x = key(a), y = key(b);
    if (x !== null && y !== null) return x - y;
    if (x === null && y === null) return a.localeCompare(b);
    return x === null ? 1 : -1;
  };
  const cellText = (row, column) => (row.cells[column] ? row.cells[column].textContent.trim() : "");

  const sortBy = (table, header, column) => {
    const descending = header.getAttribute("aria-sort") === "ascending";
    for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows).sort((a, b) => order(cellText(a, column), cellText(b, column)));
    if (descending) rows.reverse();
    body.append(...rows);
  };

  const tabbed = (table) => Array.from(table.rows)
    .filter((row) => !row.hidden)
    .map((row) => Array.from(row.cells).map((cell) => cell.textContent.trim().replace(/\s+/g, " ")).join("\t"))
    .join("\n");

  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  };

  const tools = (table, frame, number) => {
    const bar = document.createElement("div");
    bar.className = "table-tools";
    const input = document.createElement("input");
    input.type = "search";
    input.placeholder = "Filter rows";
    input.setAttribute("aria-label", `Filter rows of table ${number}`);
    const count = document.createElement("span");
    count.setAttribute("role", "status");
    const all = frame.classList.contains("long") ? `${table.tBodies[0].rows.length} rows, scroll for more` : "";
    count.textContent = all;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy table ${number}`);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        if (!row.hidden) shown += 1;
      }
      count.textContent = words.length ? `${shown} of ${table.tBodies[0].rows.length} rows` : all;
    });
    button.addEventListener("click", async () => {
      count.textContent = (await copy(tabbed(table))) ? "copied" : "the browser refused to copy";
    });
    bar.append(input, button, count);
    frame.before(bar);
  };

  // Long names of columns may break after an underscore.
  const breakable = (element) => {
    for (const node of Array.from(element.childNodes).filter((n) => n.nodeType === Node.TEXT_NODE)) {
      const parts = node.textContent.split(/(?<=_)/);
      node.replaceWith(...parts.flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part])));
    }
  };

  // Whether the first column only counts the rows of a data frame.
  const isCounted = (head, body) => body.rows.length > 0 && !head.cells[0].textContent.trim()
    && Array.from(body.rows).every((row, i) => row.cells[0].tagName === "TH" && cellText(row, 0) === String(i));

  // A data frame with a named index has its names in a second row of headers.
  const joinHeads = (upper, lower) => {
    const named = Array.from(lower.cells).findIndex((cell) => !cell.textContent.trim());
    const rest = Array.from(lower.cells).slice(named);
    if (named < 1 || upper.cells.length !== lower.cells.length || rest.some((cell) => cell.textContent.trim())) return;
    rest.forEach((cell, i) => { cell.textContent = upper.cells[named + i].textContent; });
    upper.remove();
  };

  const enhance = (table, number) => {
    const frame = document.createElement("div");
    frame.className = "table-frame";
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", `Table ${number}`);
    table.before(frame);
    frame.append(table);
    for (const cell of table.querySelectorAll("td")) {
      if (cell.textContent.length > 36) cell.classList.add("text-long");
    }
    if (table.tHead && table.tHead.rows.length === 2) joinHeads(...table.tHead.rows);
    const head = table.tHead && table.tHead.rows[table.tHead.rows.length - 1];
    const body = table.tBodies[0];
    if (!head || !body) return;
    if (isCounted(head, body)) [head, ...body.rows].forEach((row) => row.deleteCell(0));
    if (!body.rows.length) {
      body.insertRow().insertCell().textContent = "no rows";
      body.rows[0].cells[0].colSpan = head.cells.length;
    }
    if (table.rows.length > 30) frame.classList.add("long");
    if (body.rows.length < 2) return;
    const spans = Array.from(body.rows).some((row) => Array.from(row.cells).some((c) => c.rowSpan > 1 || c.colSpan > 1));
    if (spans) return;
    Array.from(head.cells).forEach((header, column) => {
      const label = header.textContent.trim();
      if (!label) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...header.childNodes);
      breakable(button);
      button.addEventListener("click", () => sortBy(table, header, column));
      header.append(button);
    });
    if (body.rows.length > 5) tools(table, frame, number);
  };

  const ready = () => {
    document.querySelectorAll("main table").forEach((table, i) => enhance(table, i + 1));
    // Empty corner cells of frames are no headers; plots without a text alternative say what they are.
    for (const cell of document.querySelectorAll("main th")) {
      if (!cell.textContent.trim()) cell.replaceWith(Object.assign(document.createElement("td"), { className: cell.className }));
    }
    document.addEventListener("play", (event) => {
      for (const player of document.querySelectorAll("audio")) {
        if (player !== event.target) player.pause();
      }
    }, true);
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", ready);
  else ready();

  // Browsers do not let a page in a folder fetch its neighbours, so the search index also
  // exists as a script, which may be loaded.
  if (location.protocol === "file:") {
    const root = document.currentScript.src.replace(/site_libs\/aegis\/site\.js.*$/, "");
    const fetched = window.fetch.bind(window);
    let index = null;
    const load = () => (index ||= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `${root}site_libs/aegis/search_index.js`;
      script.onload = () => resolve(window.AEGIS_SEARCH);
      script.onerror = () => reject(new Error("no search index"));
      document.head.append(script);
    }));
    window.fetch = (address, options) => /(^|\/)search\.json([?#]|$)/.test(String(address))
      ? load().then((entries) => new Response(JSON.stringify(entries), { status: 200, headers: { "Content-Type": "application/json" } }))
      : fetched(address, options);
  }
})();
