(function () {
  "use strict";
  // The square of the diagram within the drawing; svg.py has the same numbers.
  const LEFT = 60, TOP = 12, SIDE = 356;
  const report = JSON.parse(document.getElementById("data").textContent);
  const level = Math.round(1000 * report.measured.confidence) / 10 + " %";

  // Only 0 and 1 themselves read as 0 and 1; checks/decimals.py has the same rule.
  function digits(value, least) {
    if (value === null || value === undefined) return "\u2013";
    if (value > 0 && value < 1e-5) return value.toExponential(0);
    let decimals = least || 3;
    const rounds = function () { return ["0", "1"].includes(String(Number(value.toFixed(decimals)))); };
    while (value !== 0 && value !== 1 && decimals < 12 && rounds()) decimals += 1;
    return value.toFixed(decimals);
  }

  function axesOf(figure, svg) {
    const chosen = figure.querySelector('input[type="radio"]:checked');
    const low = Number(svg.dataset.low), high = Number(svg.dataset.high);
    const odds = function (p) { return Math.log(p / (1 - p)); };
    const start = odds(low), span = odds(high) - start;
    const logit = chosen !== null && chosen.value === "logit";
    return {
      place: function (p) {
        if (!logit) return p;
        return (odds(Math.min(Math.max(p, low), high)) - start) / span;
      },
      value: function (place) {
        if (!logit) return place;
        return 1 / (1 + Math.exp(-(start + place * span)));
      }
    };
  }

  function isShown(figure, number) {
    const box = figure.querySelector("input.t" + number);
    return box === null || box.checked;
  }

  function nearest(values, p, distance) {
    let best = 0;
    values.forEach(function (value, k) {
      if (distance(value, p) < distance(values[best], p)) best = k;
    });
    return best;
  }

  // What the pointer or the arrow keys may rest on: dots of bins, points of curves.
  function targets(figure) {
    if (figure.dataset.overview) return overviewTargets(figure);
    const model = report.models[Number(figure.dataset.model)];
    const panel = model.diagrams[Number(figure.dataset.panel)];
    const found = [];
    panel.bins.forEach(function (bins, k) {
      if (!isShown(figure, panel.curves.length + k)) return;
      bins.predicted.forEach(function (p, i) {
        found.push({
          p: p, y: bins.observed[i],
          text: bins.method + ", " + digits(bins.left[i], bins.decimals[i]) + " to " + digits(bins.right[i], bins.decimals[i]) +
            "\npredicted " + digits(p, bins.decimals[i]) + ", observed " + digits(bins.observed[i]) +
            "\n" + level + " interval " + digits(bins.low[i]) + " to " + digits(bins.high[i]) +
            "\n" + bins.rows[i].toLocaleString("en") + " rows"
        });
      });
    });
    const curves = panel.curves.filter(function (_, k) { return isShown(figure, k); });
    return { dots: found, curves: curves };
  }

  function overviewTargets(figure) {
    const curves = [];
    report.models.slice(0, 20).forEach(function (model, k) {
      if (isShown(figure, k) && model.diagrams.length && model.diagrams[0].curves.length) {
        curves.push(Object.assign({ name: model.name }, model.diagrams[0].curves[0]));
      }
    });
    return { dots: [], curves: curves };
  }

  function onCurves(curves, p, axes) {
    const away = function (a, b) { return Math.abs(axes.place(a) - axes.place(b)); };
    const lines = [];
    let first = null;
    curves.forEach(function (curve) {
      const k = nearest(curve.p, p, away);
      const band = curve.low ? " (" + digits(curve.low[k]) + " to " + digits(curve.high[k]) + ")" : "";
      lines.push((curve.name || curve.method) + ": " + digits(curve.calibrated[k]) + band);
      if (first === null) first = { p: curve.p[k], y: curve.calibrated[k] };
    });
    if (first === null) return null;
    return { p: first.p, y: first.y, text: "predicted " + digits(first.p) + ", observed rate\n" + lines.join("\n") };
  }

  function show(figure, target) {
    const svg = figure.querySelector("svg.chart");
    const tip = figure.querySelector(".tip");
    const pointer = svg.querySelector(".pointer");
    if (target === null) {
      tip.textContent = "";
      pointer.setAttribute("visibility", "hidden");
      return;
    }
    const axes = axesOf(figure, svg);
    const x = LEFT + SIDE * axes.place(target.p);
    const y = TOP + SIDE * (1 - axes.place(target.y));
    pointer.querySelector(".guide").setAttribute("d", "M" + x + "," + TOP + "V" + (TOP + SIDE));
    const spot = pointer.querySelector(".spot");
    spot.setAttribute("cx", x);
    spot.setAttribute("cy", y);
    pointer.setAttribute("visibility", "visible");
    tip.textContent = target.text;
    // Out of the way of what is pointed at: upper left, or lower right of the diagonal.
    const share = (y - TOP) / SIDE;
    const box = svg.getBoundingClientRect();
    const unit = box.width / svg.viewBox.baseVal.width;
    const right = x > LEFT + SIDE / 2 ? x * unit - tip.offsetWidth - 6 : x * unit + 16;
    tip.style.left = Math.max(right, 8) + "px";
    tip.style.top = Math.max((TOP + SIDE * Math.min(share, 0.8)) * unit - 10, 8) + "px";
  }

  function wireDiagram(figure) {
    const plot = figure.querySelector(".plot");
    const svg = plot.querySelector("svg.chart");
    let step = -1;

    function at(event) {
      const box = svg.getBoundingClientRect();
      const unit = svg.viewBox.baseVal.width / box.width;
      const x = ((event.clientX - box.left) * unit - LEFT) / SIDE;
      const y = 1 - ((event.clientY - box.top) * unit - TOP) / SIDE;
      if (x < -0.02 || x > 1.02) return null;
      const axes = axesOf(figure, svg);
      const found = targets(figure);
      let best = null, distance = 0.045;
      found.dots.forEach(function (dot) {
        const away = Math.hypot(axes.place(dot.p) - x, axes.place(dot.y) - y);
        if (away < distance) { best = dot; distance = away; }
      });
      return best || onCurves(found.curves, axes.value(Math.min(Math.max(x, 0), 1)), axes);
    }

    svg.addEventListener("pointermove", function (event) { show(figure, at(event)); });
    svg.addEventListener("pointerdown", function (event) { show(figure, at(event)); });
    svg.addEventListener("pointerleave", function () { show(figure, null); });
    plot.addEventListener("blur", function () { show(figure, null); step = -1; });
    plot.addEventListener("keydown", function (event) {
      const moves = { ArrowRight: 1, ArrowLeft: -1 };
      if (event.key === "Escape") { show(figure, null); step = -1; return; }
      if (!(event.key in moves)) return;
      event.preventDefault();
      const found = targets(figure);
      const axes = axesOf(figure, svg);
      const stops = found.dots.length ? found.dots : (found.curves[0] || { p: [] }).p
        .filter(function (_, k) { return k % 8 === 0; })
        .map(function (p) { return onCurves(found.curves, p, axes); });
      if (!stops.length) return;
      step = Math.min(Math.max(step + moves[event.key], 0), stops.length - 1);
      show(figure, stops[step]);
    });
    figure.addEventListener("change", function () { show(figure, null); step = -1; });
  }

  function valueOf(cell) {
    const value = cell.dataset.value;
    return value === undefined ? cell.textContent.trim() : value === "" ? -Infinity : Number(value);
  }

  function wireSorting(table) {
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      if (head.tagName !== "TH") return;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () {
        const up = head.getAttribute("aria-sort") === "descending" ||
          (!head.hasAttribute("aria-sort") && !head.classList.contains("n"));
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const body = table.tBodies[0];
        const rows = Array.from(body.rows);
        rows.sort(function (a, b) {
          const left = valueOf(a.cells[column]), right = valueOf(b.cells[column]);
          const order = typeof left === "string" || typeof right === "string"
            ? String(left).localeCompare(String(right), "en", { numeric: true }) : left - right;
          return up ? order : -order;
        });
        rows.forEach(function (row) { body.appendChild(row); });
      });
    });
  }

  // Mark text that a spreadsheet would read as a formula.
  function field(value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? "'" + value : value;
    return /[",\n\r]/.test(text) || text !== text.trim() ? '"' + text.replace(/"/g, '""') + '"' : text;
  }

  function csv(rows) {
    if (!rows.length) return "";
    const names = Object.keys(rows[0]);
    const lines = rows.map(function (row) {
      return names.map(function (name) { return field(row[name]); }).join(",");
    });
    return [names.map(field).join(",")].concat(lines).join("\r\n") + "\r\n";
  }

  function save(name, rows) {
    const link = document.createElement("a");
    const address = URL.createObjectURL(new Blob([csv(rows)], { type: "text/csv" }));
    link.href = address;
    link.download = name + ".csv";
    document.body.appendChild(link);
    link.click();
    link.remove();
    setTimeout(function () { URL.revokeObjectURL(address); }, 1000);
  }

  function makeButton(text, label, act) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "save";
    button.textContent = text;
    button.setAttribute("aria-label", label);
    button.addEventListener("click", function () { act(button); });
    return button;
  }

  // What a table shows, as rows of text, without pictures.
  function tableTexts(table) {
    const rows = [table.tHead.rows[0]].concat(Array.from(table.tBodies[0].rows));
    return rows.map(function (row) {
      return Array.from(row.cells).filter(function (cell) { return !cell.classList.contains("picture"); })
        .map(function (cell) { return cell.textContent.trim().replace(/\s+/g, " "); });
    });
  }

  function markdown(table) {
    const rows = tableTexts(table).map(function (row) {
      return "| " + row.map(function (text) { return text.replace(/[\\|*_`<]/g, "\\$&"); }).join(" | ") + " |";
    });
    rows.splice(1, 0, "|" + "---|".repeat(tableTexts(table)[0].length));
    return rows.join("\n") + "\n";
  }

  function latex(table) {
    const signs = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}", "\u2013": "--", "\u00b1": "$\\pm$", "\u2190": "$\\leftarrow$", "\u2212": "$-$" };
    const escaped = function (text) {
      return text.replace(/[\\~^<>|\u2013\u00b1\u2190\u2212]|[&%$#_{}]/g, function (sign) { return signs[sign] || "\\" + sign; });
    };
    const heads = Array.from(table.tHead.rows[0].cells).filter(function (cell) { return !cell.classList.contains("picture"); });
    const columns = heads.map(function (cell) { return cell.classList.contains("n") ? "r" : "l"; }).join("");
    const rows = tableTexts(table).map(function (row) { return row.map(escaped).join(" & ") + " \\\\"; });
    return ["\\begin{tabular}{" + columns + "}", "\\toprule", rows[0], "\\midrule"]
      .concat(rows.slice(1), ["\\bottomrule", "\\end{tabular}", ""]).join("\n");
  }

  function copy(text, button) {
    const done = function () {
      const before = button.textContent;
      button.textContent = "copied";
      setTimeout(function () { button.textContent = before; }, 1500);
    };
    // Frames of notebooks have no clipboard of their own.
    const byHand = function () {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.appendChild(area);
      area.select();
      if (document.execCommand("copy")) done();
      area.remove();
    };
    if (!navigator.clipboard) { byHand(); return; }
    navigator.clipboard.writeText(text).then(done, byHand);
  }

  function addCopying(table) {
    const name = table.dataset.name;
    const line = document.createElement("p");
    line.className = "copy";
    line.textContent = "Copy as";
    const makers = { CSV: function () { return csv(tableRows(table)); }, Markdown: function () { return markdown(table); }, LaTeX: function () { return latex(table); } };
    Object.keys(makers).forEach(function (format) {
      line.appendChild(makeButton(format, "Copy the table of " + name + " as " + format, function (button) { copy(makers[format](), button); }));
    });
    line.appendChild(makeButton("download", "Download the table of " + name + " as CSV", function () { save(name, tableRows(table)); }));
    table.parentNode.insertAdjacentElement("afterend", line);
  }

  function tableRows(table) {
    const names = Array.from(table.tHead.rows[0].cells, function (cell) { return cell.textContent.trim(); });
    return Array.from(table.tBodies[0].rows, function (row) {
      const record = {};
      Array.from(row.cells).forEach(function (cell, k) {
        if (cell.classList.contains("picture")) return;
        if (names[k] === "Interval") {
          const ends = cell.textContent.split(" to ");
          record.low = ends.length === 2 ? Number(ends[0]) : null;
          record.high = ends.length === 2 ? Number(ends[1]) : null;
          return;
        }
        const value = valueOf(cell);
        record[names[k]] = value === -Infinity ? null : value;
      });
      return record;
    });
  }

  function diagramRows(figure) {
    const rows = [];
    const model = report.models[Number(figure.dataset.model)];
    const panel = model.diagrams[Number(figure.dataset.panel)];
    panel.curves.forEach(function (curve) {
      curve.p.forEach(function (p, k) {
        rows.push({ model: model.name, event: panel.event, method: curve.method, predicted: p,
          observed: curve.calibrated[k], low: curve.low ? curve.low[k] : null,
          high: curve.high ? curve.high[k] : null, left: null, right: null, rows: null });
      });
    });
    panel.bins.forEach(function (bins) {
      bins.predicted.forEach(function (p, k) {
        rows.push({ model: model.name, event: panel.event, method: bins.method, predicted: p,
          observed: bins.observed[k], low: bins.low[k], high: bins.high[k],
          left: bins.left[k], right: bins.right[k], rows: bins.rows[k] });
      });
    });
    return rows;
  }

  document.querySelectorAll("table.sortable").forEach(function (table) {
    wireSorting(table);
    addCopying(table);
  });
  document.querySelectorAll("figure.diagram").forEach(function (figure) {
    wireDiagram(figure);
    if (figure.dataset.overview) return;
    const label = "Download the diagram's data as CSV";
    const button = makeButton(label, label, function () { save("diagram", diagramRows(figure)); });
    figure.querySelector("figcaption").insertAdjacentElement("afterend", button);
  });
})();
