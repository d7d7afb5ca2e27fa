//! Lines over time.

use super::drawing::{Drawing, Place, Size, clip, number, steps};
use super::frame::{BOTTOM, LEFT, RIGHT, TOP, TimeFrame, close};
use super::sample::{POINTS_MAX, Point, sample};
use super::scale::Scale;
use crate::metric::Unit;
use crate::result::Stage;

/// Most lines of one chart: more patterns cannot be distinguished.
const SERIES_MAX: usize = 6;
/// Most limits drawn.
const LIMITS_MAX: usize = 6;
/// Distance of labels at the ends of lines.
const LABEL_STEP: f64 = 150.0;

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its label at its end.
    pub name: String,
    /// Its points in order of time; a value lasts until the next point, the last one until the end
    /// of the chart.
    pub points: Vec<Point>,
}

/// A stage of the run, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageBand {
    /// Which.
    pub stage: Stage,
    /// Its first second.
    pub from: f64,
    /// Its end.
    pub to: f64,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeMark {
    /// Seconds from the first connection.
    pub at: f64,
    /// As text.
    pub text: String,
}

/// A value that the lines ought to stay below or above.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// In the unit of the chart.
    pub value: f64,
    /// `p99 < 50ms`.
    pub text: String,
}

/// A chart of lines over the time of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct LineChart {
    /// Its description.
    pub title: String,
    /// The title of the vertical axis: `messages per second`.
    pub axis: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Logarithmic vertical axis; values of 0 are gaps then.
    pub log: bool,
    /// The lines, at most six are drawn.
    pub series: Vec<Series>,
    /// The part of the values that is not what the chart is about: drawn as an area behind the
    /// lines.
    pub band: Option<Series>,
    /// Length of the time axis in seconds.
    pub seconds: f64,
    /// Stages behind the lines.
    pub stages: Vec<StageBand>,
    /// Vertical marks.
    pub marks: Vec<TimeMark>,
    /// Horizontal lines.
    pub limits: Vec<Limit>,
    /// Most points of a line.
    pub points_max: usize,
}

impl Default for LineChart {
    fn default() -> Self {
        Self {
            title: String::new(),
            axis: String::new(),
            unit: Unit::Count,
            log: false,
            series: Vec::new(),
            band: None,
            seconds: 0.0,
            stages: Vec::new(),
            marks: Vec::new(),
            limits: Vec::new(),
            points_max: POINTS_MAX,
        }
    }
}

impl LineChart {
    /// Draws it; none if no line has a point.
    pub fn draw(&self) -> Option<Drawing> {
        let lines: Vec<_> = self
            .series
            .iter()
            .take(SERIES_MAX)
            .map(|line| self.runs(line))
            .collect();
        let band = self.band.as_ref().map(|band| (band, self.runs(band)));
        let (low, high) = self.extent(&lines, band.as_ref().map(|(_, runs)| runs.as_slice()))?;
        let y = self.vertical(low, high);
        let frame = TimeFrame::new(&self.title, &self.axis, self.seconds);
        let mut drawing = frame.open(y, self.unit, &self.stages);
        let mut labels = Vec::new();
        if let Some((band, runs)) = &band {
            labels.extend(draw_band(&mut drawing, band, runs, |at| frame.x(at), y));
        }
        for (index, (series, runs)) in self.series.iter().zip(&lines).enumerate() {
            let Some(&(_, last)) = runs.last().and_then(|run| run.last()) else {
                continue;
            };
            let place = |&(at, value): &(f64, f64)| (frame.x(at), y.at(value));
            let d: String = runs
                .iter()
                .map(|run| steps(&run.iter().map(place).collect::<Vec<_>>()))
                .collect();
            drawing.path(&format!("l s{}", index + 1), &series.name, &d);
            labels.push(EndLabel {
                y: y.at(last),
                text: &series.name,
                style: Swatch::Line(index + 1),
            });
        }
        close(&mut drawing);
        let ends = lines.iter().filter_map(|runs| runs.last()?.last());
        let highest_end = ends.map(|end| end.1).fold(0.0, f64::max);
        for limit in self.limits.iter().take(LIMITS_MAX) {
            draw_limit(&mut drawing, limit, y, highest_end);
        }
        end_labels(&mut drawing, labels);
        frame.marks(&mut drawing, &self.marks);
        Some(drawing)
    }

    fn runs(&self, series: &Series) -> Runs {
        let drawn = |&(at, value): &Point| (at, value.filter(|value| !self.log || *value > 0.0));
        let end = (self.seconds, None);
        let points: Vec<Point> = series.points.iter().map(drawn).chain([end]).collect();
        sample(&points, self.points_max)
    }

    /// The lowest and highest value, and a limit where it is near enough not to flatten the lines.
    fn extent(&self, lines: &[Runs], band: Option<&[Run]>) -> Option<(f64, f64)> {
        lines.iter().flatten().next()?;
        let band = || band.into_iter().flatten();
        let runs = || lines.iter().flatten().chain(band());
        let values = || runs().flatten().map(|point| point.1);
        let low = values().min_by(f64::total_cmp)?;
        let high = values().max_by(f64::total_cmp)?;
        let near = if self.log { 30.0 } else { 2.5 };
        let limits = self.limits.iter().map(|limit| limit.value);
        let limits: Vec<f64> = limits
            .filter(|limit| *limit > 0.0 && *limit < high * near && *limit * near > low)
            .collect();
        Some((
            limits.iter().copied().fold(low, f64::min),
            limits.iter().copied().fold(high, f64::max),
        ))
    }

    fn vertical(&self, low: f64, high: f64) -> Scale {
        if self.log {
            Scale::logarithmic(low, high, (BOTTOM, TOP))
        } else {
            Scale::linear(high, self.unit, (BOTTOM, TOP))
        }
    }
}

/// Points without a gap, and those of a line with gaps between them.
type Run = Vec<(f64, f64)>;
type Runs = Vec<Run>;

/// An area from the bottom up to the values; returns its label.
fn draw_band<'series>(
    drawing: &mut Drawing,
    band: &'series Series,
    runs: &[Run],
    x: impl Fn(f64) -> f64,
    y: Scale,
) -> Option<EndLabel<'series>> {
    let outline = |run: &Run| {
        let points: Vec<(f64, f64)> = run
            .iter()
            .map(|&(at, value)| (x(at), y.at(value)))
            .collect();
        let (first, last) = (points.first()?, points.last()?);
        let down = BOTTOM.round() - last.1.round();
        let back = first.0.round() - last.0.round();
        Some(format!(
            "{}v{}h{}z",
            steps(&points),
            number(down),
            number(back)
        ))
    };
    let d: String = runs.iter().filter_map(outline).collect();
    drawing.path("l gen", &band.name, &d);
    let last = runs.last()?.last()?;
    Some(EndLabel {
        y: y.at(last.1),
        text: &band.name,
        style: Swatch::Area,
    })
}

/// The name of a line, to the right of the plot.
pub(super) struct EndLabel<'series> {
    /// The end of the line.
    pub(super) y: f64,
    /// The name.
    pub(super) text: &'series str,
    /// What stands before it.
    pub(super) style: Swatch,
}

/// The sample of a line or an area in a legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Swatch {
    /// A line with the style of this number, from 1.
    Line(usize),
    /// The area behind the lines.
    Area,
    /// None: shades distinguish what is drawn.
    Shade,
}

/// Names of lines at their ends, moved apart where they would touch, each with a piece of its line.
pub(super) fn end_labels(drawing: &mut Drawing, mut labels: Vec<EndLabel<'_>>) {
    labels.sort_by(|left, right| left.y.total_cmp(&right.y));
    let mut free = TOP - 40.0;
    for label in &mut labels {
        label.y = label.y.max(free);
        free = label.y + LABEL_STEP;
    }
    let mut free = BOTTOM + 40.0;
    for label in labels.iter_mut().rev() {
        label.y = label.y.min(free);
        free = label.y - LABEL_STEP;
    }
    for EndLabel { y, text, style } in labels {
        let mut x = RIGHT + 50.0;
        match style {
            Swatch::Line(style) => {
                drawing.line(&format!("n s{style}"), (x, y), (x + 230.0, y));
                x += 270.0;
            }
            Swatch::Area => {
                drawing.rectangle("gen", Place::new(x, y - 50.0), Size::new(230.0, 100.0));
                x += 270.0;
            }
            Swatch::Shade => {}
        }
        drawing.text("n", Place::new(x, y + 40.0), &clip(text, 12));
    }
}

/// A limit with its name on the side where the lines do not end.
fn draw_limit(drawing: &mut Drawing, limit: &Limit, y: Scale, highest_end: f64) {
    if !(y.range.0..=y.range.1).contains(&limit.value) {
        return;
    }
    let at = y.at(limit.value);
    drawing.line("i", (LEFT, at), (RIGHT, at));
    let below = at - TOP < 200.0 || (highest_end > limit.value && BOTTOM - at > 200.0);
    let y = if below { at + 130.0 } else { at - 35.0 };
    drawing.text("i e", Place::new(RIGHT - 40.0, y), &clip(&limit.text, 40));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(values: &[Option<f64>]) -> LineChart {
        let times = (0_u32..).map(f64::from);
        let points = times.zip(values.iter().copied()).collect();
        LineChart {
            title: "rate".to_owned(),
            seconds: 10.0,
            series: vec![Series {
                name: "sent".to_owned(),
                points,
            }],
            ..LineChart::default()
        }
    }

    fn path_of(svg: &str) -> &str {
        let (_, rest) = svg.split_once("data-n=\"sent\" d=\"").unwrap();
        rest.split_once('"').unwrap().0
    }

    #[test]
    fn a_gap_starts_a_new_line() {
        let svg = chart(&[Some(1.0), Some(2.0), None, Some(2.0)])
            .draw()
            .unwrap()
            .inline();
        assert_eq!(path_of(&svg).matches('M').count(), 2, "{svg}");
        assert_eq!(chart(&[None, None]).draw(), None);
    }

    #[test]
    fn a_value_lasts_as_long_as_its_second() {
        let mut line = chart(&[Some(5.0), Some(5.0), Some(0.0)]);
        line.seconds = 3.0;
        let place = |at: f64| TimeFrame::new("", "", 3.0).x(at).round();
        let path = path_of(&line.draw().unwrap().inline()).to_owned();
        let second = place(1.0) - place(0.0);
        let expected = format!("M{LEFT} {TOP}h{second}h{second}v{}h{second}", BOTTOM - TOP);
        assert_eq!(path, expected, "no slope to 0, and up to the end");
        let alone = LineChart {
            seconds: 1.0,
            ..chart(&[Some(5.0)])
        };
        let path = path_of(&alone.draw().unwrap().inline()).to_owned();
        assert_eq!(path, format!("M{LEFT} {TOP}h{}", RIGHT - LEFT));
    }

    #[test]
    fn the_generators_part_is_an_area_from_the_bottom_with_a_name() {
        let mut chart = LineChart {
            log: true,
            seconds: 2.0,
            ..chart(&[Some(1e6), Some(2e6)])
        };
        chart.band = Some(Series {
            name: "generator".to_owned(),
            points: vec![(0.0, Some(1e5)), (1.0, Some(3e5))],
        });
        let svg = chart.draw().unwrap().inline();
        let (_, d) = svg.split_once("data-n=\"generator\" d=\"").unwrap();
        let d = d.split_once('"').unwrap().0;
        assert!(d.ends_with(&format!("h{}z", LEFT - RIGHT)), "{d}");
        assert!(svg.contains("<rect class=\"gen\"") && svg.contains(">generator</text>"));
        chart.series.clear();
        assert_eq!(chart.draw(), None, "an area alone says nothing");
    }

    #[test]
    fn a_name_of_a_stage_is_left_out_on_a_screen_too_narrow_for_it() {
        let mut chart = chart(&[Some(5.0)]);
        chart.stages = vec![StageBand {
            stage: Stage::WarmUp,
            from: 0.0,
            to: 1.25,
        }];
        let svg = chart.draw().unwrap().inline();
        assert!(
            svg.contains("class=\"g far\"") && svg.contains(">warm-up<"),
            "{svg}"
        );
    }

    #[test]
    fn zero_has_no_place_on_a_log_axis() {
        let log = |values| LineChart {
            log: true,
            ..chart(values)
        };
        let svg = log(&[Some(10.0), Some(0.0), Some(100.0)])
            .draw()
            .unwrap()
            .inline();
        assert_eq!(path_of(&svg).matches('M').count(), 2, "{svg}");
        assert_eq!(log(&[Some(0.0)]).draw(), None);
    }

    #[test]
    fn a_limit_shows_if_it_is_near_enough() {
        let with = |value| {
            let limits = vec![Limit {
                value,
                text: "limit".to_owned(),
            }];
            let chart = LineChart {
                limits,
                ..chart(&[Some(10.0), Some(12.0)])
            };
            chart.draw().unwrap().inline().contains(">limit<")
        };
        assert!(with(20.0));
        assert!(!with(2_000.0), "it would flatten the line");
    }

    #[test]
    fn names_of_lines_that_end_together_are_moved_apart() {
        let mut chart = chart(&[Some(5.0), Some(5.0)]);
        chart.series = ["a", "b", "c"]
            .map(|name| Series {
                name: name.to_owned(),
                ..chart.series[0].clone()
            })
            .into();
        let svg = chart.draw().unwrap().inline();
        let mut places: Vec<f64> = svg
            .split("<text class=\"n\"")
            .skip(1)
            .map(|text| {
                text.split("y=\"")
                    .nth(1)
                    .unwrap()
                    .split('"')
                    .next()
                    .unwrap()
                    .parse()
                    .unwrap()
            })
            .collect();
        places.sort_by(f64::total_cmp);
        assert_eq!(places.len(), 3);
        assert!(
            places
                .windows(2)
                .all(|pair| pair[1] - pair[0] >= LABEL_STEP)
        );
    }

    #[test]
    fn marks_and_stages_are_named_where_there_is_room() {
        let mut chart = chart(&[Some(5.0); 10]);
        let mark = |at, text: &str| TimeMark {
            at,
            text: text.to_owned(),
        };
        chart.marks = vec![
            mark(2.0, "broker <killed>"),
            mark(8.0, "a"),
            mark(8.01, "b"),
        ];
        chart.stages = vec![
            StageBand {
                stage: Stage::WarmUp,
                from: 0.0,
                to: 0.1,
            },
            StageBand {
                stage: Stage::Hold,
                from: 0.1,
                to: 10.0,
            },
        ];
        let svg = chart.draw().unwrap().inline();
        assert!(svg.contains(">1 broker &lt;killed&gt;<"), "{svg}");
        assert!(svg.contains(">hold<") && !svg.contains(">warm-up<"));
        let (before, _) = svg.split_once(">hold<").unwrap();
        let y: f64 = before
            .rsplit_once("y=\"")
            .unwrap()
            .1
            .trim_end_matches('"')
            .parse()
            .unwrap();
        assert!(y > BOTTOM, "the name of a stage is below the lines: {y}");
        assert_eq!(svg.matches("data-at=").count(), 3);
    }
}
