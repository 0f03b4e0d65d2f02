"""Pictures of generated scenes."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from dialgym.tasks.visual_dialogue.scenes import COLUMNS, GROUNDS, TIMES, Scenes, Thing

WIDTH, HEIGHT = 480, 360
FINE = 3
"""Scenes are drawn so many times larger, then made smaller, which gives smooth edges."""
HORIZON = 0.47
"""Beginning of the ground, from the top."""
TINTS = {
    "red": (219, 68, 66), "orange": (240, 126, 34), "yellow": (250, 216, 58),
    "green": (63, 150, 84), "blue": (58, 124, 206), "purple": (142, 88, 182),
}  # fmt: skip
SKIES = {"day": ((126, 190, 236), (226, 242, 250)), "night": ((22, 28, 66), (78, 74, 128))}
SOILS = {
    "grass": ((158, 205, 118), (116, 172, 86)),
    "sand": ((240, 218, 166), (222, 190, 128)),
    "snow": ((250, 252, 255), (214, 226, 240)),
}
DARK = 0.62
"""Brightness of the ground and the toys by night, as a share of that by day."""
Colour = tuple[int, int, int]


class ToyPart(NamedTuple):
    """A piece of a toy, in a square from 0 to 1 with y downwards."""

    form: str  # "polygon" or "ellipse"
    points: tuple[tuple[float, float], ...]
    tone: float = 1.0  # how bright it is; 0 cuts a hole


def _star() -> tuple[tuple[float, float], ...]:
    angles = np.pi * (np.arange(10) / 5 - 0.5)
    radii = np.where(np.arange(10) % 2, 0.22, 0.52)
    return tuple(
        zip((0.5 + radii * np.cos(angles)).tolist(), (0.55 + radii * np.sin(angles)).tolist())
    )


TOYS: dict[str, tuple[ToyPart, ...]] = {
    "ball": (ToyPart("ellipse", ((0.08, 0.12), (0.92, 0.96))),),
    "block": (
        ToyPart("polygon", ((0.08, 0.34), (0.7, 0.34), (0.7, 0.96), (0.08, 0.96))),
        ToyPart("polygon", ((0.08, 0.34), (0.3, 0.14), (0.92, 0.14), (0.7, 0.34)), 1.22),
        ToyPart("polygon", ((0.7, 0.34), (0.92, 0.14), (0.92, 0.76), (0.7, 0.96)), 0.75),
    ),
    "cone": (
        ToyPart("ellipse", ((0.1, 0.78), (0.9, 0.98)), 0.85),
        ToyPart("polygon", ((0.5, 0.04), (0.9, 0.88), (0.1, 0.88))),
        ToyPart("polygon", ((0.5, 0.04), (0.9, 0.88), (0.62, 0.93)), 0.8),
    ),
    "star": (ToyPart("polygon", _star()),),
    "ring": (
        ToyPart("ellipse", ((0.06, 0.1), (0.94, 0.98))),
        ToyPart("ellipse", ((0.3, 0.34), (0.7, 0.74)), 0.0),
    ),
    "cup": (
        ToyPart("ellipse", ((0.6, 0.36), (0.98, 0.76)), 0.85),
        ToyPart("ellipse", ((0.7, 0.45), (0.88, 0.67)), 0.0),
        ToyPart("polygon", ((0.1, 0.24), (0.76, 0.24), (0.68, 0.92), (0.18, 0.92))),
        ToyPart("ellipse", ((0.18, 0.86), (0.68, 0.98))),
        ToyPart("ellipse", ((0.1, 0.15), (0.76, 0.33)), 0.6),
    ),
    "boat": (
        ToyPart("polygon", ((0.46, 0.06), (0.52, 0.06), (0.52, 0.7), (0.46, 0.7)), 0.6),
        ToyPart("polygon", ((0.56, 0.1), (0.9, 0.58), (0.56, 0.58)), 1.3),
        ToyPart("polygon", ((0.42, 0.18), (0.42, 0.58), (0.16, 0.58)), 1.18),
        ToyPart("polygon", ((0.02, 0.66), (0.98, 0.66), (0.8, 0.96), (0.2, 0.96))),
    ),
    "house": (
        ToyPart("polygon", ((0.16, 0.44), (0.84, 0.44), (0.84, 0.96), (0.16, 0.96))),
        ToyPart("polygon", ((0.5, 0.06), (0.96, 0.48), (0.04, 0.48)), 0.72),
        ToyPart("polygon", ((0.56, 0.62), (0.74, 0.62), (0.74, 0.96), (0.56, 0.96)), 0.55),
        ToyPart("polygon", ((0.26, 0.58), (0.44, 0.58), (0.44, 0.76), (0.26, 0.76)), 1.4),
    ),
}  # fmt: skip


def draw_scene(scenes: Scenes, image: int) -> np.ndarray:
    """(360, 480, 3) uint8: one of the scenes."""
    ground, time = GROUNDS[scenes.ground[image]], TIMES[scenes.time[image]]
    canvas = _landscape(ground, time).copy()
    for thing in scenes.things(image):
        _place(canvas, thing, time)
    return np.asarray(canvas.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS))


@cache
def _landscape(ground: str, time: str) -> Image.Image:
    """Sky and ground with a low hill, without any toy; not to be drawn on."""
    size = WIDTH * FINE, HEIGHT * FINE
    canvas = _fade(size, *SKIES[time])
    draw = ImageDraw.Draw(canvas)
    (_night if time == "night" else _day)(draw)
    near, far = SOILS[ground][1], SOILS[ground][0]
    soil = _fade(size, _dim(far, time), _dim(near, time), HORIZON)
    hills = Image.new("L", size)
    edge = ImageDraw.Draw(hills)
    x = np.linspace(0, size[0], 60)
    y = size[1] * (HORIZON + 0.018 * np.sin(x / size[0] * 5.2) - 0.012 * np.sin(x / size[0] * 11))
    edge.polygon([*zip(x.tolist(), y.tolist()), (size[0], size[1]), (0, size[1])], fill=255)
    canvas.paste(soil, mask=hills)
    _grains(canvas, ground, time)
    return canvas


def _day(draw: ImageDraw.ImageDraw) -> None:
    _disc(draw, 410, 52, 26, (255, 224, 110))
    for x, y in ((90, 56), (250, 36)):
        for dx, dy, radius in ((-26, 6, 14), (0, 0, 20), (26, 6, 15), (10, 10, 14), (-10, 10, 14)):
            _disc(draw, x + dx, y + dy, radius, (255, 255, 255))


def _night(draw: ImageDraw.ImageDraw) -> None:
    spots = np.random.default_rng(0).random((46, 3))
    for x, y, size in spots.tolist():
        _disc(draw, x * WIDTH, y * HEIGHT * HORIZON * 0.9, 0.6 + 1.1 * size, (240, 240, 255))
    _disc(draw, 410, 52, 24, (250, 244, 214))
    _disc(draw, 420, 46, 20, (30, 35, 76))


def _disc(draw: ImageDraw.ImageDraw, x: float, y: float, radius: float, fill: Colour) -> None:
    box = [FINE * v for v in (x - radius, y - radius, x + radius, y + radius)]
    draw.ellipse(box, fill=fill)


def _grains(canvas: Image.Image, ground: str, time: str) -> None:
    """Blades of grass, grains of sand, glints of snow."""
    draw, near = ImageDraw.Draw(canvas), SOILS[ground][1]
    top = HEIGHT * (HORIZON + 0.04)
    for x, y, size in np.random.default_rng(1).random((90, 3)).tolist():
        x, y = FINE * x * WIDTH, FINE * (top + y * (HEIGHT - top))
        long = FINE * (2 + 4 * size)
        if ground == "grass":
            tint = _dim(_scaled(near, 0.85), time)
            draw.line([(x, y), (x + long / 2, y - long)], fill=tint, width=FINE)
        else:
            tint = _dim(_scaled(near, 0.92 if ground == "sand" else 1.12), time)
            draw.ellipse([x, y, x + long / 2, y + long / 3], fill=tint)


def _place(canvas: Image.Image, thing: Thing, time: str) -> None:
    """Draw a toy where it stands, with its shadow."""
    back = thing.row == "back"
    side = int(FINE * (106 if thing.size == "large" else 64) * (0.78 if back else 1.0))
    apart = 128 if back else 150
    x = FINE * (WIDTH / 2 + apart * (COLUMNS.index(thing.column) - 1)) - side / 2
    foot = FINE * (HEIGHT * (0.62 if back else 0.93))
    shadow = Image.new("L", (side * 3 // 2, side // 2))
    box = [0.22 * side, 0.16 * side, 1.26 * side, 0.34 * side]
    ImageDraw.Draw(shadow).ellipse(box, fill=90)
    shadow = shadow.filter(ImageFilter.GaussianBlur(3 * FINE))
    corner = int(x - 0.2 * side), int(foot - 0.25 * side)
    canvas.paste(Image.new("RGB", shadow.size, (20, 24, 40)), corner, shadow)
    toy = _toy(thing, side, time)
    canvas.paste(toy, (int(x), int(foot - 0.97 * side)), toy)


def _toy(thing: Thing, side: int, time: str) -> Image.Image:
    """(side, side) RGBA: a toy without its shadow."""
    tint = _dim(TINTS[thing.colour], time, 0.82)
    whole, toy = Image.new("L", (side, side)), Image.new("RGB", (side, side))
    for form, points, tone in TOYS[thing.category]:
        mask = Image.new("L", (side, side))
        scaled = [(x * side, y * side) for x, y in points]
        getattr(ImageDraw.Draw(mask), form)(scaled, fill=255)
        if tone:
            toy.paste(MATERIALS[thing.material](side, _scaled(tint, tone)), mask=mask)
            whole = ImageChops.lighter(whole, mask)
        else:
            whole = ImageChops.subtract(whole, mask)
    inner = whole.filter(ImageFilter.MinFilter(2 * (side // 70) + 3))
    rim = ImageChops.subtract(whole, inner)
    toy.paste(Image.new("RGB", toy.size, _scaled(tint, 0.45)), mask=rim)
    if thing.material == "glass":
        clear = whole.point(lambda v: v * 0.76)
        whole = ImageChops.lighter(clear, rim)
        shine = Image.new("L", toy.size)
        ImageDraw.Draw(shine).line([(0.3 * side, 0.36 * side), (0.2 * side, 0.62 * side)], fill=255,
                                   width=max(2, side // 16))  # fmt: skip
        shine = ImageChops.multiply(shine, inner)
        toy.paste(Image.new("RGB", toy.size, (255, 255, 255)), mask=shine)
        whole = ImageChops.lighter(whole, shine)
    return Image.merge("RGBA", (*toy.split(), whole))


def _wood(side: int, tint: Colour) -> Image.Image:
    """The tint with wavy lines of grain."""
    y, x = np.mgrid[0:side, 0:side] / side
    grain = np.sin(2 * np.pi * (6.5 * y + 0.55 * np.sin(3.1 * x) + 0.12 * np.sin(17 * x)))
    return _shaded(tint, 1.06 - 0.24 * (grain > 0.6))


def _metal(side: int, tint: Colour) -> Image.Image:
    """The tint with a bright reflection from the upper left to the lower right."""
    y, x = np.mgrid[0:side, 0:side] / side
    along = x + 0.35 * y
    light = 0.72 + 0.95 * np.exp(-(((along - 0.42) / 0.1) ** 2))
    return _shaded(tint, light + 0.35 * np.exp(-(((along - 0.95) / 0.06) ** 2)))


def _glass(side: int, tint: Colour) -> Image.Image:
    """The tint, paler upwards."""
    y = np.mgrid[0:side, 0:side][0] / side
    return _shaded(tint, 1.2 - 0.25 * y)


MATERIALS: dict[str, Callable[[int, Colour], Image.Image]] = {
    "wood": _wood,
    "metal": _metal,
    "glass": _glass,
}


def _shaded(tint: Colour, light: np.ndarray) -> Image.Image:
    """An image of the tint in this light (H, W): black at 0, the tint at 1, white at 2."""
    light = light[..., None]
    values = np.array(tint) * np.minimum(light, 1) + (255 - np.array(tint)) * np.maximum(
        light - 1, 0
    )
    return Image.fromarray(values.clip(0, 255).astype(np.uint8))


def _fade(size: tuple[int, int], top: Colour, bottom: Colour, start: float = 0.0) -> Image.Image:
    """From one colour at `start` of the height to another at the bottom."""
    t = ((np.linspace(0, 1, size[1]) - start) / (1 - start)).clip(0, 1)[:, None]
    column = (1 - t) * np.array(top) + t * np.array(bottom)
    wide = np.broadcast_to(column[:, None], (size[1], size[0], 3))
    return Image.fromarray(wide.astype(np.uint8))


def _scaled(tint: Colour, tone: float) -> Colour:
    """Darker below 1, paler above."""
    red, green, blue = (int(v * min(tone, 1) + (255 - v) * max(tone - 1, 0)) for v in tint)
    return red, green, blue


def _dim(tint: Colour, time: str, night: float = DARK) -> Colour:
    return tint if time == "day" else _scaled(tint, night)
