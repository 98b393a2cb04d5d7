/* Explore: the same chart in plotly, loaded once and only when a reader asks for it. Data comes as a
   script beside the page, not by fetch, so that it works from a disk too. */
(function (d) {
  "use strict";
  var figures = {};
  var loading = {};
  var COLOURS = { limit: "--limit", boundary: "--ink", gap: "--line" };
  var CONFIG = {
    displaylogo: false,
    showSendToCloud: false,
    plotlyServerURL: "",
    responsive: true,
    displayModeBar: true,
    modeBarButtonsToRemove: ["select2d", "lasso2d"]
  };

  window.tokenwattFigure = function (id, figure) {
    figures[id] = figure;
  };

  function script(url) {
    loading[url] =
      loading[url] ||
      new Promise(function (resolve, reject) {
        var tag = d.createElement("script");
        tag.src = url;
        tag.onload = resolve;
        tag.onerror = reject;
        d.head.appendChild(tag);
      });
    return loading[url];
  }

  /* plotly leaves its style rules alone where this link is found */
  function styles(url) {
    if (d.getElementById("plotly.js-style-global")) return;
    var link = d.createElement("link");
    link.rel = "stylesheet";
    link.href = url;
    link.id = "plotly.js-style-global";
    link.className = "no-inline-styles";
    d.head.appendChild(link);
  }

  function colour(name) {
    /* light-dark() is resolved by the browser only where it is used as a colour */
    var probe = d.createElement("span");
    probe.hidden = true;
    probe.style.color = "var(" + name + ")";
    d.body.appendChild(probe);
    var text = getComputedStyle(probe).color;
    probe.remove();
    return text;
  }

  function themed(figure) {
    var copy = JSON.parse(JSON.stringify(figure));
    var ink = colour("--ink2");
    var hair = colour("--hair");
    copy.data.forEach(function (trace) {
      var tone = colour(trace.meta.slot ? "--s" + trace.meta.slot : "--line");
      trace.line.color = tone;
      if (trace.marker) trace.marker.color = tone;
    });
    copy.layout.shapes.forEach(function (shape) {
      var tone = colour(COLOURS[shape.name]);
      if (shape.type === "rect") {
        shape.fillcolor = tone;
        shape.opacity = 0.12;
        shape.line = { width: 0 };
      } else {
        shape.line = { color: tone, width: 1.5, dash: shape.name === "limit" ? "dash" : "solid" };
        shape.label.font = { color: tone };
      }
    });
    Object.keys(copy.layout).forEach(function (key) {
      if (!/^[xy]axis/.test(key)) return;
      copy.layout[key].gridcolor = hair;
      copy.layout[key].linecolor = colour("--line");
      copy.layout[key].zeroline = false;
      copy.layout[key].automargin = true;
    });
    copy.layout.paper_bgcolor = copy.layout.plot_bgcolor = "rgba(0,0,0,0)";
    copy.layout.font = { family: getComputedStyle(d.body).fontFamily, size: 12, color: ink };
    copy.layout.title = undefined;
    copy.layout.margin = { l: 56, r: 16, t: 36, b: 48 };
    copy.layout.legend = { orientation: "h", y: 1.12 };
    copy.layout.modebar = {
      bgcolor: "rgba(0,0,0,0)",
      color: colour("--ink3"),
      activecolor: colour("--ink")
    };
    copy.layout.hoverlabel = { bgcolor: colour("--ink"), font: { color: colour("--bg") } };
    if (copy.layout.meta.mark) copy.layout.annotations = [watermark(copy.layout.meta.mark)];
    return copy;
  }

  function watermark(text) {
    return {
      text: text,
      xref: "paper",
      yref: "paper",
      x: 0.5,
      y: 0.35,
      showarrow: false,
      opacity: 0.15,
      font: { size: 22, color: colour("--sim"), weight: 800 }
    };
  }

  function draw(box, id) {
    var figure = themed(figures[id]);
    return window.Plotly.react(box, figure.data, figure.layout, CONFIG);
  }

  function open(button, charts) {
    var id = button.dataset.explore;
    var box = d.createElement("div");
    box.className = "plot" + (charts.length > 1 ? " tall" : "");
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", button.dataset.title + ", interactive");
    button.disabled = true;
    button.textContent = "Loading";
    styles(button.dataset.css);
    return Promise.all([script(button.dataset.lib), script(button.dataset.fig)]).then(
      function () {
        button.disabled = false;
        button.textContent = "Close";
        charts[0].before(box);
        charts.forEach(function (chart) {
          chart.classList.add("off");
        });
        return draw(box, id).then(function () {
          return box;
        });
      },
      function () {
        button.textContent = "Can’t load the chart script";
      }
    );
  }

  function setUp(button) {
    var charts = Array.prototype.slice.call(button.closest("figure").querySelectorAll("svg.c"));
    var box = null;
    button.addEventListener("click", function () {
      if (!box) {
        open(button, charts).then(function (made) {
          box = made || null;
        });
        return;
      }
      window.Plotly.purge(box);
      box.remove();
      box = null;
      charts.forEach(function (chart) {
        chart.classList.remove("off");
      });
      button.textContent = "Explore";
    });
    d.addEventListener("themechange", function () {
      if (box) draw(box, button.dataset.explore);
    });
  }

  d.addEventListener("DOMContentLoaded", function () {
    Array.prototype.forEach.call(d.querySelectorAll("[data-explore]"), setUp);
  });
})(document);
